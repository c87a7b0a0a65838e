//! Counters of the rules of mapping tables, by dialect, rule or event, and side.
//!
//! The tables that are loaded bound the number of series. A conversation registers the handle of a
//! rule when it first meets it.

use metrics::Counter;

use super::labels::SIDES;
use super::registry::Registry;
use crate::jsonrpc::Side;

/// The counters that one conversation uses. Searched, not hashed: there are some ten.
#[derive(Debug, Default)]
pub(super) struct RuleCounters(Vec<RuleCounter>);

#[derive(Debug)]
struct RuleCounter {
    metric: &'static str,
    dialect: String,
    /// The rule or the event.
    what: String,
    side: Side,
    counter: Counter,
    /// What is not added to the counter yet.
    count: u64,
}

impl RuleCounters {
    /// Counts a rule or an event of a dialect under `metric`.
    pub(super) fn add(
        &mut self,
        registry: &Registry,
        metric: &'static str,
        [dialect, what]: [&str; 2],
        side: Side,
    ) {
        let same = |one: &&mut RuleCounter| {
            one.side == side && one.metric == metric && one.what == what && one.dialect == dialect
        };
        if let Some(known) = self.0.iter_mut().find(same) {
            known.count += 1;
            return;
        }
        self.0.push(RuleCounter {
            metric,
            dialect: dialect.to_owned(),
            what: what.to_owned(),
            side,
            counter: registry.handle(metric, &[dialect, what, SIDES[side as usize]]),
            count: 1,
        });
    }

    pub(super) fn flush(&mut self) {
        for one in self.0.iter_mut().filter(|one| one.count > 0) {
            one.counter.increment(std::mem::take(&mut one.count));
        }
    }
}
