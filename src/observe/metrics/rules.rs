//! How often each rule of each mapping table was at work.
//!
//! The tables that are loaded bound the list. A conversation asks for a rule's number once and
//! keeps it. Not here: what a rule does (see `dialect`).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::cells::Count;
use crate::conversation::FiredRule;
use crate::jsonrpc::Side;

/// The numbers of all rules that have worked, by dialect, rule or event, and side.
#[derive(Debug, Default)]
pub(super) struct Rules(Mutex<BTreeMap<Key, Arc<Count>>>);

/// Dialect, rule or event, side.
pub(super) type Key = (String, String, &'static str);

/// The numbers that a conversation keeps.
#[derive(Debug, Default)]
pub(super) struct Known {
    fired: Vec<(Side, FiredRule, Arc<Count>)>,
    events: Vec<(Side, &'static str, String, Arc<Count>)>,
}

impl Rules {
    fn of(&self, dialect: &str, what: &str, side: Side) -> Arc<Count> {
        let side = super::words::SIDES[side as usize];
        let key = (dialect.to_owned(), what.to_owned(), side);
        Arc::clone(self.lock().entry(key).or_default())
    }

    pub(super) fn read(&self) -> Vec<(Key, u64)> {
        let all = self.lock();
        all.iter()
            .map(|(key, count)| (key.clone(), count.get()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Count>>> {
        self.0.lock()
    }
}

impl Known {
    /// A rule was at work. Searched, not hashed: a conversation meets some ten.
    pub(super) fn fired(&mut self, all: &Rules, side: Side, rule: &FiredRule) {
        let known = self
            .fired
            .iter()
            .find(|(at, one, _)| *at == side && one == rule);
        match known {
            Some((_, _, count)) => count.add(1),
            None => {
                let count = all.of(&rule.dialect, &rule.rule, side);
                count.add(1);
                self.fired.push((side, rule.clone(), count));
            }
        }
    }

    /// Something happened in a dialect.
    pub(super) fn happened(&mut self, all: &Rules, side: Side, event: &'static str, dialect: &str) {
        let same = |(at, name, spoken, _): &&(Side, &'static str, String, Arc<Count>)| {
            *at == side && *name == event && spoken == dialect
        };
        match self.events.iter().find(same) {
            Some((_, _, _, count)) => count.add(1),
            None => {
                let count = all.of(dialect, event, side);
                count.add(1);
                self.events.push((side, event, dialect.to_owned(), count));
            }
        }
    }
}
