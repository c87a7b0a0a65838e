//! The queue of one recording: the events that are not written yet; and what all recordings count.
//!
//! There are two batches: one is filled by the observer, the other one is emptied by the writer
//! thread. Small frames are copied into one buffer, so that the buffers they were read into are free
//! again; large ones are shared.

use std::ops::Range;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use crate::metrics::Buckets;
use jsonrpc::{Frame, Side};
use panics::SharedMutex;
use recording::EventKind;
use recording::encode::MessageInfo;
use recording::redact::Hits;

/// Frames up to this length are copied. A shared frame keeps the buffer it was read into until it is
/// written, and the reader needs a new one: up to this length that costs more than a copy.
const MAX_COPIED: usize = 256 << 10;

/// Maximum number of bytes and events that wait; beyond either, [`OverflowPolicy`] decides.
const MAX_BYTES: usize = 8 << 20;
const MAX_EVENTS: usize = 1 << 16;

/// Beyond this number of bytes the writer thread is woken early. A wake-up costs as much as
/// recording a hundred messages; the data should still be in the processor's cache.
const URGENT_BYTES: usize = 256 << 10;

/// The minimum capacity that a batch keeps.
const MIN_CAPACITY: usize = 4 << 10;

/// What happens when the writer is too far behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum OverflowPolicy {
    /// The conversation waits
    #[default]
    Lossless,
    /// Data that does not fit is dropped and counted
    Lossy,
}

/// The queue of one recording.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    pub(super) policy: OverflowPolicy,
    /// When the recording began.
    began: Instant,
    pub(super) stats: Arc<RecorderStats>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) batch: Batch,
    /// The writer thread was notified that there are events.
    pub(super) is_listed: bool,
    /// The writer thread was asked to write at once.
    pub(super) is_urgent: bool,
    /// The task that waits for room.
    pub(super) waker: Option<Waker>,
    /// Writing has failed; nothing more is written.
    pub(super) has_failed: bool,
    /// The reason why no more events will come.
    pub(super) ended: Option<String>,
}

/// Events, in order. The last run of forwarded frames of each side is kept apart, because it may
/// continue.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    text: Vec<u8>,
    /// Bytes of the shared frames.
    shared_bytes: usize,
    /// Frames forwarded unchanged since the last entry about them, by side.
    pub(super) forwarded: [Option<Run>; 2],
    /// Received frames with smaller numbers are no longer referenced.
    pub(super) oldest: u64,
}

/// An event, and its time in microseconds since the recording began.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) item: Item,
}

#[derive(Debug)]
pub(super) enum Item {
    /// A frame received from a side, and its facts. These frames are numbered from 0.
    Received(Side, StoredFrame, Option<MessageInfo>),
    /// A frame sent to a side, and the received frame that it was made from, if any.
    Sent(Side, Option<Box<Origin>>, StoredFrame),
    /// Frames forwarded unchanged to a side.
    Forwarded(Side, Run),
    /// Another event, and the number of the received frame that caused it. Boxed, because it is
    /// rare and large.
    Event(Box<EventKind>, Option<u64>),
}

/// The received frame that another one was made from.
#[derive(Debug)]
pub(super) struct Origin {
    /// The number of the received frame.
    pub(super) n: u64,
    pub(super) frame: Frame,
    pub(super) rules: Vec<String>,
}

/// A stored frame.
#[derive(Debug)]
pub(super) enum StoredFrame {
    /// Its position in the text of the batch.
    Copied(Range<u32>),
    Shared(Box<Frame>),
}

/// Consecutive frames received from one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) count: u64,
    /// The position of the last one among all frames of its side.
    pub(super) place: u64,
}

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

impl Queue {
    /// The queue of a recording that begins now.
    pub(super) fn new(policy: OverflowPolicy, stats: Arc<RecorderStats>) -> Arc<Self> {
        let queue = Arc::new(Self {
            state: Mutex::default(),
            policy,
            began: Instant::now(),
            stats,
        });
        let mut queues = queue.stats.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        drop(queues);
        queue
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The time since the recording began, in microseconds.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl State {
    /// Whether the writer thread should be woken now.
    pub(super) const fn is_large(&self) -> bool {
        self.batch.size() >= URGENT_BYTES
    }
}

impl Batch {
    /// Whether it is below both limits; the next item may exceed them.
    pub(super) const fn has_room(&self) -> bool {
        self.size() < MAX_BYTES && self.entries.len() < MAX_EVENTS
    }

    /// Stores a frame.
    pub(super) fn store(&mut self, frame: &Frame) -> StoredFrame {
        if frame.len() > MAX_COPIED {
            self.shared_bytes += frame.len();
            return StoredFrame::Shared(Box::new(frame.clone()));
        }
        let place = |at: usize| u32::try_from(at).expect("a batch is bounded far below 4 GiB");
        let start = place(self.text.len());
        self.text.extend_from_slice(frame.as_bytes());
        StoredFrame::Copied(start..place(self.text.len()))
    }

    /// The bytes of a stored frame.
    pub(super) fn frame<'a>(&'a self, stored: &'a StoredFrame) -> &'a [u8] {
        match stored {
            StoredFrame::Copied(at) => &self.text[at.start as usize..at.end as usize],
            StoredFrame::Shared(frame) => frame.as_bytes(),
        }
    }

    /// Adds a run of frames that were forwarded to `to`.
    pub(super) fn forward(&mut self, to: Side, run: Run, at: u64) {
        let last = &mut self.forwarded[to as usize];
        let extended = last.as_mut().is_some_and(|last| last.extend(run));
        if !extended && let Some(run) = last.replace(run) {
            let item = Item::Forwarded(to, run);
            self.entries.push(Entry { at, item });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.forwarded.iter().all(Option::is_none)
    }

    /// Empties the batch, which had `entries` entries. It keeps the memory of a batch of this size:
    /// a steady stream should not allocate for each batch, nor a quiet conversation keep the memory
    /// of a burst.
    pub(super) fn clear(&mut self, entries: usize) {
        let text = self.text.len();
        self.text.clear();
        if self.text.capacity() > 4 * text.max(MIN_CAPACITY) {
            self.text.shrink_to(2 * text.max(MIN_CAPACITY));
        }
        self.entries.clear();
        let used = entries.max(MIN_CAPACITY / size_of::<Entry>());
        if self.entries.capacity() > 4 * used {
            self.entries.shrink_to(2 * used);
        }
        self.shared_bytes = 0;
        self.forwarded = [None; 2];
    }

    pub(super) const fn size(&self) -> usize {
        self.text.len() + self.shared_bytes
    }
}

impl Run {
    /// A run of the frame `n` only, at position `place` among all frames of its side.
    pub(super) const fn of(n: u64, place: u64) -> Self {
        Self {
            first: n,
            last: n,
            count: 1,
            place,
        }
    }

    /// Appends a run that follows this one; `false` when it does not follow.
    pub(super) const fn extend(&mut self, next: Self) -> bool {
        let follows = self.place + next.count == next.place;
        if follows {
            self.last = next.last;
            self.place = next.place;
            self.count += next.count;
        }
        follows
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Like the writer thread: the entries are removed before the batch is emptied.
    fn use_once(batch: &mut Batch, count: usize) {
        for _ in 0..count {
            batch.forward(Side::Client, Run::of(0, 7), 0);
            batch.store(&Frame::from("0123456789".to_owned()));
        }
        let entries = batch.entries.len();
        batch.entries.drain(..);
        batch.clear(entries);
    }

    #[test]
    fn a_batch_keeps_the_memory_it_has_a_use_for_and_no_other() {
        let mut batch = Batch::default();
        let memory = |batch: &Batch| (batch.entries.capacity(), batch.text.capacity());
        use_once(&mut batch, 5_000);
        let steady = memory(&batch);
        assert!(steady.0 >= 4_999 && steady.1 >= 50_000, "{steady:?}");
        use_once(&mut batch, 5_000);
        assert_eq!(memory(&batch), steady);
        for _ in 0..100 {
            use_once(&mut batch, 1);
        }
        let quiet = memory(&batch);
        let text = MIN_CAPACITY..=4 * MIN_CAPACITY;
        assert!(quiet.0 < 500 && text.contains(&quiet.1), "{quiet:?}");
    }
}
