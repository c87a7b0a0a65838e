//! How much is recorded, and how much is left out.
//!
//! Not here: showing it (see `tap::metrics`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The figures of all recordings of a process.
#[derive(Debug, Default)]
pub struct Tally {
    bytes: AtomicU64,
    events: AtomicU64,
    dropped: AtomicU64,
}

impl Tally {
    /// Lines were written.
    pub(super) fn wrote(&self, bytes: usize, events: u64) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.events.fetch_add(events, Relaxed);
    }

    /// Something was seen and is not recorded.
    pub(super) fn left_out(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Bytes that were written, as lines; packing comes later.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Events that were written.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// Events that were left out, because the writer was behind or could not write.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}
