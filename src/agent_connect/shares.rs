//! The shares of owners in what all of them use.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::sync::Semaphore;

use panics::SharedMutex;

/// A semaphore for each owner that uses one.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    permits: usize,
    used: Arc<SharedMutex<HashMap<Arc<str>, Weak<Semaphore>>>>,
}

impl Shares {
    /// Semaphores with so many permits each.
    pub(super) fn new(permits: usize) -> Self {
        let used = Arc::default();
        Self { permits, used }
    }

    /// The semaphore of an owner. It is forgotten when it is used no more.
    pub(super) fn of(&self, owner: &Arc<str>) -> Arc<Semaphore> {
        let mut used = self.used.lock();
        if let Some(known) = used.get(owner).and_then(Weak::upgrade) {
            return known;
        }
        used.retain(|_, one| one.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.permits));
        used.insert(owner.clone(), Arc::downgrade(&new));
        new
    }
}

/// Whether an owner that holds `own` of `total` things may add `more`, when there may be `max`: at
/// most as many as are then left for others, so that the next owner always finds room. Only the
/// relay's own user, and clients that are not authenticated, may use all of them.
///
/// This is the rule of dynamic thresholds for shared buffers (Choudhury and Hahne, 1998).
pub(super) fn has_room(owner: &str, own: usize, total: usize, more: usize, max: usize) -> bool {
    // The names of other principals begin with another word.
    let is_limited = owner.starts_with("token ") || owner.starts_with("certificate ");
    let left = max.saturating_sub(total);
    more <= left && (!is_limited || own + more <= left)
}
