//! The turns of a connection's messages that have not passed.

use std::collections::BTreeSet;

/// The turns that have not passed, by number.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: BTreeSet<u64>,
    next: u64,
}

impl Turns {
    /// Adds a turn behind all others, and returns its number.
    pub(super) fn add(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.open.insert(number);
        number
    }

    /// Whether all earlier turns have passed.
    pub(super) fn is_first(&self, number: u64) -> bool {
        self.open.first() == Some(&number)
    }

    /// Removes a turn, which has passed.
    pub(super) fn remove(&mut self, number: u64) {
        self.open.remove(&number);
    }
}
