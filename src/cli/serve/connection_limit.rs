//! Counts connections against a limit.
//!
//! The limit is an argument, because a reload can change it while clients are connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of slots in use.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionLimit(Arc<AtomicUsize>);

/// A slot in use. Drop releases it.
#[derive(Debug)]
pub(super) struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionLimit {
    /// Takes a slot unless `limit` are in use.
    pub(super) fn acquire(&self, limit: usize) -> Option<ConnectionSlot> {
        let more = |taken: usize| (taken < limit).then_some(taken + 1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| ConnectionSlot(Arc::clone(&self.0)))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_may_change_while_permits_are_held() {
        let limit = ConnectionLimit::default();
        let one = limit.acquire(2);
        let two = limit.acquire(2);
        assert!(one.is_some() && two.is_some());
        assert!(limit.acquire(2).is_none());
        assert!(limit.acquire(3).is_some(), "a limit that was raised");
        drop(one);
        assert!(limit.acquire(1).is_none(), "a limit that was lowered");
        assert!(limit.acquire(2).is_some());
    }
}
