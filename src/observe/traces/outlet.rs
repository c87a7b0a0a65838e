//! Where spans go that are over: a queue with a bound, and figures of what became of them.
//!
//! Not here: emptying it (see `cli::traces`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use opentelemetry_sdk::trace::SpanData;

/// Takes spans, and never waits.
#[derive(Clone, Debug)]
pub struct Outlet {
    queue: SyncSender<SpanData>,
    tally: Arc<Tally>,
}

/// What became of spans.
#[derive(Debug, Default)]
pub struct Tally {
    exported: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl Outlet {
    /// One with room for so many spans, and what takes them out.
    #[must_use]
    pub fn new(room: usize) -> (Self, Receiver<SpanData>) {
        let (queue, spans) = sync_channel(room.max(1));
        let tally = Arc::default();
        (Self { queue, tally }, spans)
    }

    /// Where it is counted.
    #[must_use]
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    pub(super) fn give(&self, span: SpanData) {
        if self.queue.try_send(span).is_err() {
            self.tally.dropped.fetch_add(1, Relaxed);
        }
    }
}

impl Tally {
    /// A collector took so many, or did not.
    pub fn sent(&self, spans: usize, taken: bool) {
        let count = if taken { &self.exported } else { &self.failed };
        count.fetch_add(spans as u64, Relaxed);
    }

    /// Taken by a collector; not taken; left out, because too many waited.
    #[must_use]
    pub fn read(&self) -> [u64; 3] {
        [&self.exported, &self.failed, &self.dropped].map(|count| count.load(Relaxed))
    }
}
