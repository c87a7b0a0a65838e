//! Counts of the rules of mapping tables, by dialect, rule or event, and side.
//!
//! The tables that are loaded bound the number of series.

use std::mem;

use metrics::Counter;

use super::labels::SIDES;
use super::registry::Registry;
use crate::jsonrpc::Side;

/// What one conversation counts. Searched, not hashed: there are some ten.
#[derive(Debug, Default)]
pub(super) struct RuleCounts(Vec<RuleCount>);

#[derive(Debug)]
struct RuleCount {
    metric: &'static str,
    dialect: String,
    /// The rule or the event.
    what: String,
    side: Side,
    /// What is not added to the counter yet.
    count: u64,
}

impl RuleCounts {
    /// Counts a rule or an event of a dialect under `metric`.
    pub(super) fn add(&mut self, metric: &'static str, [dialect, what]: [&str; 2], side: Side) {
        let same = |one: &&mut RuleCount| {
            one.side == side && one.metric == metric && one.what == what && one.dialect == dialect
        };
        match self.0.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => self.0.push(RuleCount {
                metric,
                dialect: dialect.to_owned(),
                what: what.to_owned(),
                side,
                count: 1,
            }),
        }
    }

    pub(super) fn flush(&mut self, registry: &Registry) {
        for one in self.0.iter_mut().filter(|one| one.count > 0) {
            let labels = [&*one.dialect, &*one.what, SIDES[one.side as usize]];
            let counter: Counter = registry.handle(one.metric, &labels);
            counter.increment(mem::take(&mut one.count));
        }
    }
}
