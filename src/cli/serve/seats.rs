//! Counts connections against a limit.
//!
//! The limit is an argument, because a reload can change it while clients are connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of slots in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Seats(Arc<AtomicUsize>);

/// A slot in use. Drop releases it.
#[derive(Debug)]
pub(super) struct Seat(Arc<AtomicUsize>);

impl Seats {
    /// Takes a slot unless `limit` are in use.
    pub(super) fn take(&self, limit: usize) -> Option<Seat> {
        let more = |taken: usize| (taken < limit).then_some(taken + 1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Seat(Arc::clone(&self.0)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_the_limit_says_at_that_time() {
        let seats = Seats::default();
        let one = seats.take(2);
        let two = seats.take(2);
        assert!(one.is_some() && two.is_some());
        assert!(seats.take(2).is_none());
        assert!(seats.take(3).is_some(), "a limit that was raised");
        drop(one);
        assert!(seats.take(1).is_none(), "a limit that was lowered");
        assert!(seats.take(2).is_some());
    }
}
