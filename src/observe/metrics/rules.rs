//! Counters of the rules of mapping tables, by dialect, rule or event, and side.
//!
//! The tables that are loaded bound the number of series. A conversation registers the handle of a
//! rule when it first meets it.

use metrics::Counter;

use super::labels::SIDES;
use super::registry::Registry;
use crate::conversation::Fired;
use crate::jsonrpc::Side;

/// The counters that one conversation uses. Searched, not hashed: there are some ten.
#[derive(Debug, Default)]
pub(super) struct RuleCounters {
    rules: Vec<(Side, Fired, Rule)>,
    events: Vec<(Side, &'static str, String, Rule)>,
}

/// A counter, and what is not added to it yet.
#[derive(Debug)]
struct Rule(Counter, u64);

impl RuleCounters {
    /// A rule changed a message.
    pub(super) fn fired(&mut self, registry: &Registry, side: Side, rule: &Fired) {
        let same = |(at, known, _): &&mut (Side, Fired, Rule)| *at == side && known == rule;
        if let Some((_, _, Rule(_, count))) = self.rules.iter_mut().find(same) {
            *count += 1;
            return;
        }
        let labels = [&*rule.dialect, &*rule.rule, SIDES[side as usize]];
        let counter = registry.handle("translations_total", &labels);
        self.rules.push((side, rule.clone(), Rule(counter, 1)));
    }

    /// Something happened in a dialect.
    pub(super) fn event(
        &mut self,
        registry: &Registry,
        side: Side,
        event: &'static str,
        dialect: &str,
    ) {
        let known = self.events.iter_mut();
        let mut same =
            known.filter(|(at, name, of, _)| *at == side && *name == event && of == dialect);
        if let Some((_, _, _, Rule(_, count))) = same.next() {
            *count += 1;
            return;
        }
        let labels = [dialect, event, SIDES[side as usize]];
        let counter = registry.handle("dialect_events_total", &labels);
        let rule = Rule(counter, 1);
        self.events.push((side, event, dialect.to_owned(), rule));
    }

    pub(super) fn flush(&mut self) {
        let rules = self.rules.iter_mut().map(|(_, _, rule)| rule);
        let events = self.events.iter_mut().map(|(_, _, _, event)| event);
        for Rule(counter, count) in rules.chain(events) {
            if *count > 0 {
                counter.increment(std::mem::take(count));
            }
        }
    }
}
