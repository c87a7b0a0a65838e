//! Counts what happens to the links of a relay, and the bytes that wait in them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::link::{Attach, LinkEvents};

/// The bytes that may wait for lost clients and servers in all links; half of them for one
/// principal.
pub(super) const TOTAL: usize = 512 << 20;

/// What all links of a relay share.
#[derive(Debug, Default)]
pub(super) struct LinkStats {
    events: OnceLock<Arc<dyn LinkEvents>>,
    /// The bytes that wait without an attachment.
    kept: AtomicUsize,
}

impl LinkStats {
    /// Sets the receiver of events. The first one stays; `false` for another one.
    pub(super) fn set_events(&self, events: Arc<dyn LinkEvents>) -> bool {
        self.events.set(events).is_ok()
    }

    pub(super) fn attached(&self, how: Attach) {
        if let Some(events) = self.events.get() {
            events.on_attach(how);
        }
    }

    /// Whether no more bytes may wait.
    pub(super) fn is_full(&self) -> bool {
        self.kept.load(Ordering::Relaxed) >= TOTAL
    }

    pub(super) fn keep(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
    }
}
