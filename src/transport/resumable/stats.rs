//! Counts what happens to the links of a relay, and the bytes that wait in them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use link::{Attach, LinkEvents};

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
}

/// The bytes that wait without an attachment in one link, which count for its principal and for the
/// relay as well.
#[derive(Debug)]
pub(super) struct KeptBytes {
    bytes: usize,
    /// Those of all links of the principal.
    of_principal: Arc<AtomicUsize>,
    stats: Arc<LinkStats>,
}

impl KeptBytes {
    /// None yet, of a link whose principal has `other` as well.
    pub(super) fn new(stats: &Arc<LinkStats>, other: Option<&Self>) -> Self {
        Self {
            bytes: 0,
            of_principal: other.map_or_else(Arc::default, |other| other.of_principal.clone()),
            stats: Arc::clone(stats),
        }
    }

    pub(super) const fn stats(&self) -> &Arc<LinkStats> {
        &self.stats
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no more bytes may wait.
    pub(super) fn is_full(&self) -> bool {
        let all = [(&*self.of_principal, TOTAL / 2), (&self.stats.kept, TOTAL)];
        let mut all = all.iter();
        all.any(|(kept, most)| kept.load(Ordering::Relaxed) >= *most)
    }

    /// So many bytes wait.
    pub(super) fn set(&mut self, bytes: usize) {
        for kept in [&*self.of_principal, &self.stats.kept] {
            kept.fetch_add(bytes, Ordering::Relaxed);
            kept.fetch_sub(self.bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for KeptBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}
