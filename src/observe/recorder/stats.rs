//! Statistics of recording: what was written, dropped and redacted, and what waits.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::batch::MAX_BYTES;
use super::queue::Queue;
use crate::metrics::Buckets;
use panics::SharedMutex;
use recording::redact::Hits;

/// The statistics of all recordings of a process.
#[derive(Debug)]
pub struct RecorderStats {
    totals: SharedMutex<RecorderTotals>,
    writes: Buckets,
    queues: SharedMutex<Vec<Weak<Queue>>>,
}

/// What recorders have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecorderTotals {
    /// Bytes that were written, before compression.
    pub bytes: u64,
    /// Events that were written.
    pub events: u64,
    /// Events that were dropped, because the writer was behind or could not write.
    pub dropped: u64,
    /// What was redacted.
    pub redactions: Hits,
}

impl Default for RecorderStats {
    fn default() -> Self {
        Self {
            totals: SharedMutex::default(),
            writes: Buckets::single("recording_write_seconds"),
            queues: SharedMutex::default(),
        }
    }
}

impl RecorderStats {
    /// Counts lines that were written, what was redacted in them, and the time it took.
    pub(super) fn add_written(&self, bytes: usize, events: u64, hits: Hits, took: Duration) {
        let mut totals = self.totals.lock();
        totals.bytes += bytes as u64;
        totals.events += events;
        totals.redactions.add(hits);
        self.writes.record(took);
    }

    /// Counts an event that is not recorded.
    pub(super) fn add_dropped(&self) {
        self.totals.lock().dropped += 1;
    }

    /// Adds the queue of a new recording.
    pub(super) fn add_queue(&self, queue: &Arc<Queue>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// What was done so far.
    #[must_use]
    pub fn totals(&self) -> RecorderTotals {
        *self.totals.lock()
    }

    /// The bytes that wait to be written, and their maximum.
    #[must_use]
    pub fn waiting(&self) -> (usize, usize) {
        let queues = self.queues.lock();
        let live = queues.iter().filter_map(Weak::upgrade);
        live.fold((0, 0), |(bytes, room), queue| {
            (bytes + queue.lock().batch.size(), room + MAX_BYTES)
        })
    }

    /// The times that writing lines took.
    pub(crate) const fn writes(&self) -> &Buckets {
        &self.writes
    }
}
