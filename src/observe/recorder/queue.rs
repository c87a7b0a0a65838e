//! What was seen and is not written yet, of one conversation.
//!
//! Two batches change places: one is filled by the tap, one is emptied by the desk. Small frames
//! are copied into one long text, so that the buffers they were read into are free again; large
//! ones are shared. Not here: what becomes of them.

use std::ops::Range;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use super::facts::Told;
use super::work::Work;
use crate::jsonrpc::{Frame, Side};
use crate::recording::What;

/// Frames up to this length are copied. To hold a longer one takes the buffer it was read into from
/// the conversation for a while, and new memory costs more than a copy.
const SMALL: usize = 256 << 10;

/// Bytes and events that may wait. Beyond either: as the policy says.
const BYTES: usize = 8 << 20;
const EVENTS: usize = 1 << 16;

/// What waits beyond this is worth waking the desk for before its time. A wake-up costs as much as
/// to see a hundred messages; what waits should still be in the processor's cache.
const WORTHWHILE: usize = 256 << 10;

/// Memory of a batch that is kept whatever it was last used for.
const LEAST: usize = 4 << 10;

/// What happens when the desk is too far behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The conversation waits.
    #[default]
    Lossless,
    /// What does not fit is counted and left out.
    Lossy,
}

/// The queue of one conversation, and what the desk has of it.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// The desk's alone. None once all is written.
    pub(super) work: Mutex<Option<Work>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) batch: Batch,
    /// The desk knows that there is something.
    pub(super) listed: bool,
    /// The desk was told to hurry.
    pub(super) hurried: bool,
    /// Who waits for room.
    pub(super) waker: Option<Waker>,
    /// Nothing more is written: it failed.
    pub(super) broken: bool,
    /// Nothing more will come: why.
    pub(super) over: Option<String>,
}

/// Some of what was seen, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    text: Vec<u8>,
    /// Bytes of the frames that are shared.
    shared: usize,
    /// The most text and entries that were lately in it, slowly forgotten.
    recent: [usize; 2],
    /// Frames passed on unchanged since the last entry that says so, by side.
    pub(super) passed: [Option<Run>; 2],
    /// Frames heard before this one are referred to no more.
    pub(super) oldest: u64,
}

/// One thing seen, in microseconds since the recording began.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) seen: Seen,
}

#[derive(Debug)]
pub(super) enum Seen {
    /// A side said this, and this is known of it. They are numbered from 0.
    Heard(Side, Kept, Option<Told>),
    /// This was said to a side, because of something else that was heard, if so.
    Said(Side, Option<Box<Origin>>, Kept),
    /// These were passed on to a side.
    Passed(Side, Run),
    /// Something else, which what was heard under that number caused. Boxed, for it is seldom, and
    /// large.
    Event(Box<What>, Option<u64>),
}

/// What was made into another frame.
#[derive(Debug)]
pub(super) struct Origin {
    /// The number it was heard under.
    pub(super) n: u64,
    pub(super) frame: Frame,
    pub(super) rules: Vec<String>,
}

/// A frame.
#[derive(Debug)]
pub(super) enum Kept {
    /// Its place among all that was copied.
    Copied(Range<u32>),
    Shared(Box<Frame>),
}

/// Frames heard from one side one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) count: u64,
    /// The place of the last one among all that its side said.
    pub(super) place: u64,
}

impl Run {
    /// The frame `n` alone, at `place` among all its side has said.
    pub(super) const fn of(n: u64, place: u64) -> Self {
        Self {
            first: n,
            last: n,
            count: 1,
            place,
        }
    }

    /// Takes in a run that follows this one; `false` when it does not.
    pub(super) const fn goes_on(&mut self, next: Self) -> bool {
        let follows = self.place + next.count == next.place;
        if follows {
            self.last = next.last;
            self.place = next.place;
            self.count += next.count;
        }
        follows
    }
}

impl Queue {
    pub(super) fn new(work: Work) -> Self {
        Self {
            state: Mutex::default(),
            work: Mutex::new(Some(work)),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Bytes that wait, and how many may.
    pub(super) const fn fill(&self) -> (usize, usize) {
        (self.batch.size(), BYTES)
    }

    /// Whether it is worth the desk's while now.
    pub(super) const fn is_worthwhile(&self) -> bool {
        self.batch.size() >= WORTHWHILE
    }
}

impl Batch {
    /// Whether there is room for more.
    pub(super) const fn has_room(&self) -> bool {
        self.size() < BYTES && self.entries.len() < EVENTS
    }

    /// Keeps a frame.
    pub(super) fn keep(&mut self, frame: &Frame) -> Kept {
        if frame.len() > SMALL {
            self.shared += frame.len();
            return Kept::Shared(Box::new(frame.clone()));
        }
        let place = |at: usize| u32::try_from(at).expect("a batch is bounded far below 4 GiB");
        let start = place(self.text.len());
        self.text.extend_from_slice(frame.as_bytes());
        Kept::Copied(start..place(self.text.len()))
    }

    /// The bytes of a frame that was kept.
    pub(super) fn frame<'a>(&'a self, kept: &'a Kept) -> &'a [u8] {
        match kept {
            Kept::Copied(at) => &self.text[at.start as usize..at.end as usize],
            Kept::Shared(frame) => frame.as_bytes(),
        }
    }

    /// Takes down that a run of frames went on to `to`.
    pub(super) fn pass(&mut self, to: Side, run: Run, at: u64) {
        let last = &mut self.passed[to as usize];
        let gone_on = last.as_mut().is_some_and(|last| last.goes_on(run));
        if !gone_on && let Some(run) = last.replace(run) {
            let seen = Seen::Passed(to, run);
            self.entries.push(Entry { at, seen });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.passed.iter().all(Option::is_none)
    }

    /// Empties it, in which there were so many entries. It keeps the memory that it has lately had
    /// a use for: a steady stream should not pay for new pages with each batch, nor a quiet
    /// conversation for a burst for ever.
    pub(super) fn clear(&mut self, entries: usize) {
        let used = [self.text.len(), entries];
        for (recent, used) in self.recent.iter_mut().zip(used) {
            *recent = used.max(*recent - recent.div_ceil(8));
        }
        self.entries.clear();
        self.text.clear();
        if self.text.capacity() > 4 * self.recent[0].max(LEAST) {
            self.text.shrink_to(2 * self.recent[0]);
        }
        if self.entries.capacity() > 4 * self.recent[1].max(LEAST / size_of::<Entry>()) {
            self.entries.shrink_to(2 * self.recent[1]);
        }
        self.shared = 0;
        self.passed = [None; 2];
    }

    const fn size(&self) -> usize {
        self.text.len() + self.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the desk does: the entries are gone by the time the batch is emptied.
    fn use_once(batch: &mut Batch, count: usize) {
        for _ in 0..count {
            batch.pass(Side::Client, Run::of(0, 7), 0);
            batch.keep(&Frame::from("0123456789".to_owned()));
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
        assert!(quiet.0 < 500 && quiet.1 <= 4 * LEAST, "{quiet:?}");
    }
}
