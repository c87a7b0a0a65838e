//! How much is recorded, how much is left out or kept out, and how much waits.
//!
//! Not here: showing it (see `observe::metrics`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::queue::Queue;
use crate::observe::metrics::Buckets;
use crate::recording::redact::{Hits, Rule};

/// The figures of all recordings of a process.
#[derive(Debug)]
pub struct Tally {
    bytes: AtomicU64,
    events: AtomicU64,
    dropped: AtomicU64,
    writes: Buckets,
    kept_out: [AtomicU64; Rule::ALL.len()],
    queues: Mutex<Vec<Weak<Queue>>>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::default(),
            events: AtomicU64::default(),
            dropped: AtomicU64::default(),
            writes: Buckets::single("recording_write_seconds"),
            kept_out: Default::default(),
            queues: Mutex::default(),
        }
    }
}

impl Tally {
    /// Lines were written, which took so long.
    pub(super) fn wrote(&self, bytes: usize, events: u64, took: Duration) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.events.fetch_add(events, Relaxed);
        self.writes.record(took);
    }

    /// Something was seen and is not recorded.
    pub(super) fn left_out(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// This was kept out of what is recorded.
    pub(super) fn kept_out(&self, hits: Hits) {
        for (rule, count) in Rule::ALL.into_iter().zip(&self.kept_out) {
            count.fetch_add(hits.of(rule), Relaxed);
        }
    }

    /// A recording begins, and here is what waits to be written.
    pub(super) fn begun(&self, queue: &Arc<Queue>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
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

    /// How often something was kept out, and why.
    pub fn redactions(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.kept_out.iter().map(|count| count.load(Relaxed));
        Rule::ALL.into_iter().map(Rule::name).zip(counts)
    }

    /// Bytes that wait to be written, and for how many there is room.
    #[must_use]
    pub fn waiting(&self) -> (usize, usize) {
        let queues = self.queues.lock();
        let live = queues.iter().filter_map(Weak::upgrade);
        live.fold((0, 0), |(bytes, room), queue| {
            let (more, most) = queue.lock().fill();
            (bytes + more, room + most)
        })
    }

    /// How long the system took to take lines.
    pub(in crate::observe) const fn writes(&self) -> &Buckets {
        &self.writes
    }
}
