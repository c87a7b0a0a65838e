//! A bounded queue of finished spans, and statistics of their export. `cli::traces` empties it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use opentelemetry_sdk::trace::SpanData;

/// Queues spans, and never waits.
#[derive(Clone, Debug)]
pub struct SpanSender {
    queue: SyncSender<SpanData>,
    stats: Arc<ExportStats>,
}

/// Statistics of exported spans.
#[derive(Debug, Default)]
pub struct ExportStats {
    exported: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl SpanSender {
    /// A queue for `capacity` spans, and its receiver.
    #[must_use]
    pub fn new(capacity: usize) -> (Self, Receiver<SpanData>) {
        let (queue, spans) = sync_channel(capacity.max(1));
        let stats = Arc::default();
        (Self { queue, stats }, spans)
    }

    /// The statistics.
    #[must_use]
    pub fn stats(&self) -> Arc<ExportStats> {
        Arc::clone(&self.stats)
    }

    pub(super) fn send(&self, span: SpanData) {
        if self.queue.try_send(span).is_err() {
            self.stats.dropped.fetch_add(1, Relaxed);
        }
    }
}

impl ExportStats {
    /// Counts spans that a collector accepted, or did not.
    pub fn add_export(&self, spans: usize, taken: bool) {
        let count = if taken { &self.exported } else { &self.failed };
        count.fetch_add(spans as u64, Relaxed);
    }

    /// The spans accepted by a collector, not accepted, and dropped because the queue was full.
    #[must_use]
    pub fn read(&self) -> [u64; 3] {
        [&self.exported, &self.failed, &self.dropped].map(|count| count.load(Relaxed))
    }
}
