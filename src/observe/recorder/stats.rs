//! Statistics of recording: what was written, dropped and redacted, and what waits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::queue::Queue;
use crate::observe::metrics::Buckets;
use crate::recording::redact::{HitKind, Hits};

/// The statistics of all recordings of a process.
#[derive(Debug)]
pub struct RecorderStats {
    bytes: AtomicU64,
    events: AtomicU64,
    dropped: AtomicU64,
    writes: Buckets,
    redactions: [AtomicU64; HitKind::ALL.len()],
    queues: Mutex<Vec<Weak<Queue>>>,
}

impl Default for RecorderStats {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::default(),
            events: AtomicU64::default(),
            dropped: AtomicU64::default(),
            writes: Buckets::single("recording_write_seconds"),
            redactions: Default::default(),
            queues: Mutex::default(),
        }
    }
}

impl RecorderStats {
    /// Counts lines that were written, and the time it took.
    pub(super) fn add_written(&self, bytes: usize, events: u64, took: Duration) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.events.fetch_add(events, Relaxed);
        self.writes.record(took);
    }

    /// Counts an event that is not recorded.
    pub(super) fn add_dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Counts redactions.
    pub(super) fn add_redactions(&self, hits: Hits) {
        for (rule, count) in HitKind::ALL.into_iter().zip(&self.redactions) {
            count.fetch_add(hits.count(rule), Relaxed);
        }
    }

    /// Adds the queue of a new recording.
    pub(super) fn add_queue(&self, queue: &Arc<Queue>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Bytes that were written, before compression.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Events that were written.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// Events that were dropped, because the writer was behind or could not write.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// The number of redactions, by reason.
    pub fn redactions(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.redactions.iter().map(|count| count.load(Relaxed));
        HitKind::ALL.into_iter().map(HitKind::name).zip(counts)
    }

    /// The bytes that wait to be written, and their maximum.
    #[must_use]
    pub fn waiting(&self) -> (usize, usize) {
        let queues = self.queues.lock();
        let live = queues.iter().filter_map(Weak::upgrade);
        live.fold((0, 0), |(bytes, room), queue| {
            let (more, most) = queue.lock().usage();
            (bytes + more, room + most)
        })
    }

    /// The times that writing lines took.
    pub(in crate::observe) const fn writes(&self) -> &Buckets {
        &self.writes
    }
}
