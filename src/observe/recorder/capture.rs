//! The recorder of one conversation: puts events into the queue, and tracks which frame caused
//! which; and the handle for events from elsewhere.
//!
//! A frame that passes unchanged occupies the same memory as the received one, so it is recognised
//! by its address. The received frame is held until then, so that no other one can have its
//! address.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::MutexGuard;

use super::queue::{Batch, Entry, Item, Origin, OverflowPolicy, Queue, Run, State};
use super::recording_writer::{RecordingPlan, RecordingWriter};
use super::writer_thread::{WriterSlot, WriterThread};
use crate::{Event, Observer};
use conversation::{self, Needs, Note};
use jsonrpc::{Frame, Side};
use recording::encode::MessageInfo;
use recording::{EventKind, Payload};

/// Records one conversation. Dropping it ends the recording.
#[derive(Debug)]
pub struct Recorder {
    handle: RecorderHandle,
    /// The number of the next received frame.
    next_number: u64,
    /// How many frames each side has sent.
    received: [u64; 2],
    /// The frame received last, until its facts are known.
    latest: Option<Latest>,
    /// The frame received last, until everything that it causes is known.
    cause: Option<Trigger>,
    /// What caused the frames that wait, by the side they wait for.
    lanes: [VecDeque<Option<Trigger>>; 2],
    /// The rules that changed the frame received last.
    rules: Vec<String>,
    /// Frames forwarded unchanged that are not in the queue yet, by side.
    forwarded: [Option<Run>; 2],
    /// The clock, read once per turn.
    now: Option<u64>,
    /// Events and bytes dropped since the last recorded event.
    dropped: (u64, u64),
    /// The writer was found to be behind, and may still be.
    is_behind: bool,
}

/// Adds events from outside the conversation to a recording, such as an agent's stderr.
#[derive(Clone, Debug)]
pub struct RecorderHandle {
    queue: Arc<Queue>,
    slot: Arc<WriterSlot>,
    thread: Arc<WriterThread>,
}

/// What caused a frame. Without a cause, the relay made the frame itself.
#[derive(Clone, Debug)]
enum Trigger {
    Recorded(Cause),
    /// A frame that was dropped; what it causes is dropped, too, for without a cause it would
    /// appear to be made by the relay.
    Dropped,
}

/// The frame received last.
#[derive(Debug)]
struct Latest {
    from: Side,
    frame: Frame,
    info: Option<MessageInfo>,
}

/// A received frame.
#[derive(Clone, Debug)]
struct Cause {
    n: u64,
    place: u64,
    frame: Frame,
    rules: Vec<String>,
}

impl Recorder {
    /// Begins a recording, which `thread` writes: returns its observer, and a handle for events
    /// from elsewhere.
    ///
    /// # Errors
    /// When its first file cannot be created.
    pub fn open(
        thread: &Arc<WriterThread>,
        plan: RecordingPlan,
    ) -> io::Result<(Self, RecorderHandle)> {
        let queue = Queue::new(plan.policy, Arc::clone(&plan.stats));
        let writer = RecordingWriter::begin(plan, Arc::clone(&queue))?;
        let handle = RecorderHandle {
            queue,
            slot: thread.add(writer),
            thread: Arc::clone(thread),
        };
        let recorder = Self {
            handle: handle.clone(),
            next_number: 0,
            received: [0; 2],
            latest: None,
            cause: None,
            lanes: Default::default(),
            rules: Vec::new(),
            forwarded: [None; 2],
            now: None,
            dropped: (0, 0),
            is_behind: false,
        };
        Ok((recorder, handle))
    }

    /// Records the frame received last, whose facts are now complete.
    fn store_latest(&mut self) {
        let Some(Latest { from, frame, info }) = self.latest.take() else {
            return;
        };
        let place = self.received[from as usize];
        self.received[from as usize] += 1;
        let stored = self.push(frame.len(), |batch| {
            Item::Received(from, batch.store(&frame), info)
        });
        if !stored {
            self.cause = Some(Trigger::Dropped);
            return;
        }
        self.cause = Some(Trigger::Recorded(Cause {
            n: self.next_number,
            place,
            frame,
            rules: Vec::new(),
        }));
        self.next_number += 1;
    }

    fn record_sent(&mut self, to: Side, frame: &Frame) {
        let cause = self.lanes[to as usize].pop_front().flatten();
        let cause = match cause {
            Some(Trigger::Recorded(cause)) => cause,
            Some(Trigger::Dropped) => return self.count_dropped(frame.len()),
            None => {
                self.push(frame.len(), |batch| {
                    Item::Sent(to, None, batch.store(frame))
                });
                return;
            }
        };
        let (own, other) = (cause.frame.as_bytes(), frame.as_bytes());
        if own.as_ptr() == other.as_ptr() && own.len() == other.len() {
            let run = Run::of(cause.n, cause.place);
            let forwarded = &mut self.forwarded[to as usize];
            if !forwarded.as_mut().is_some_and(|passed| passed.extend(run)) {
                let before = std::mem::take(&mut self.forwarded);
                self.forwarded[to as usize] = Some(run);
                if before.iter().any(Option::is_some) {
                    self.flush_forwarded(before);
                }
            }
            return;
        }
        let Cause {
            n,
            rules,
            frame: received,
            ..
        } = cause;
        let origin = Box::new(Origin {
            n,
            frame: received,
            rules,
        });
        self.push(frame.len(), |batch| {
            Item::Sent(to, Some(origin), batch.store(frame))
        });
    }

    fn record_note(&mut self, note: &Note) {
        if let Note::Translated { rules, .. } = note {
            self.rules.extend(rules.iter().map(ToString::to_string));
            return;
        }
        let cause = self.cause.as_ref().and_then(Trigger::number);
        self.push(0, |_| Item::Event(Box::new(event(note)), cause));
    }

    /// Assigns the cause to the frames that were queued since the last call.
    fn set_cause(&mut self, waiting: [usize; 2]) {
        let mut cause = self.cause.take();
        let rules = std::mem::take(&mut self.rules);
        let mut caused = false;
        for (lane, waiting) in self.lanes.iter_mut().zip(waiting) {
            lane.truncate(waiting);
            caused |= lane.len() < waiting;
        }
        if let Some(Trigger::Recorded(cause)) = &mut cause
            && caused
        {
            cause.rules = rules;
        } else if !rules.is_empty() {
            // The message was dropped by the rules.
            let n = cause.as_ref().and_then(Trigger::number);
            for text in rules {
                let note = Box::new(EventKind::Note {
                    name: "translated".to_owned(),
                    text,
                    source: None,
                });
                self.push(0, |_| Item::Event(note, n));
            }
        }
        let missing = |lane: &VecDeque<_>, waiting: usize| waiting.saturating_sub(lane.len());
        let mut left: usize = (self.lanes.iter().zip(waiting))
            .map(|(lane, waiting)| missing(lane, waiting))
            .sum();
        for (lane, waiting) in self.lanes.iter_mut().zip(waiting) {
            for _ in 0..missing(lane, waiting) {
                left -= 1;
                // In most cases there is one, which takes the cause without a copy.
                lane.push_back(if left == 0 {
                    cause.take()
                } else {
                    cause.clone()
                });
            }
        }
    }

    /// Reports frames that were forwarded, and which received frames are no longer referenced.
    fn flush_forwarded(&mut self, forwarded: [Option<Run>; 2]) {
        let (at, oldest) = (self.now(), self.oldest());
        let mut state = self.handle.queue.lock();
        if !state.has_failed {
            for (to, run) in [Side::Client, Side::Agent].into_iter().zip(forwarded) {
                if let Some(run) = run {
                    state.batch.forward(to, run, at);
                }
            }
            state.batch.oldest = oldest;
            if !state.batch.is_empty() {
                self.handle.notify(state);
            }
        }
    }

    /// The time of this turn. The clock is read once per turn, because that costs as much as
    /// copying a message.
    fn now(&mut self) -> u64 {
        *self.now.get_or_insert_with(|| self.handle.queue.now())
    }

    /// Adds an event to the queue; `false` when it was dropped.
    fn push(&mut self, bytes: usize, what: impl FnOnce(&mut Batch) -> Item) -> bool {
        let at = self.now();
        let mut state = self.handle.queue.lock();
        if state.has_failed {
            self.handle.queue.stats.add_dropped();
            return false;
        }
        let room = state.batch.has_room();
        if !room && self.handle.queue.policy == OverflowPolicy::Lossy {
            drop(state);
            self.count_dropped(bytes);
            return false;
        }
        self.is_behind = !room;
        state.batch.entries.extend(gap(&mut self.dropped, at));
        let item = what(&mut state.batch);
        state.batch.entries.push(Entry { at, item });
        self.handle.notify(state);
        true
    }

    /// Counts an event that is not recorded.
    fn count_dropped(&mut self, bytes: usize) {
        self.handle.queue.stats.add_dropped();
        self.dropped.0 += 1;
        self.dropped.1 += bytes as u64;
    }

    /// The oldest received frame that may still be referenced.
    fn oldest(&self) -> u64 {
        let first =
            |lane: &VecDeque<Option<Trigger>>| lane.iter().flatten().find_map(Trigger::number);
        let waiting = self.lanes.iter().filter_map(first);
        let waiting = waiting.chain(self.cause.as_ref().and_then(Trigger::number));
        let passed = self.forwarded.iter().flatten().map(|run| run.first);
        waiting.chain(passed).min().unwrap_or(self.next_number)
    }
}

impl RecorderHandle {
    /// Records output of the agent on stderr.
    pub fn stderr(&self, bytes: &[u8]) {
        let body = bytes::Bytes::copy_from_slice(bytes);
        self.event(EventKind::Stderr(Payload::of_text(body)));
    }

    /// Records an event, unless the recording has ended or is far behind.
    pub fn event(&self, what: EventKind) {
        let at = self.queue.now();
        let mut state = self.queue.lock();
        if !state.has_failed && state.ended.is_none() && state.batch.has_room() {
            let item = Item::Event(Box::new(what), None);
            state.batch.entries.push(Entry { at, item });
            self.notify(state);
        }
    }

    /// Reports the queue to the writer thread, if that was not done yet.
    fn notify(&self, mut state: MutexGuard<'_, State>) {
        let new = !std::mem::replace(&mut state.is_listed, true);
        let urgent = (state.is_large() || state.ended.is_some()) && !state.is_urgent;
        state.is_urgent |= urgent;
        drop(state);
        if new || urgent {
            self.thread
                .notify(new.then(|| Arc::clone(&self.slot)), urgent);
        }
    }
}

impl Trigger {
    /// The number of the received frame.
    const fn number(&self) -> Option<u64> {
        match self {
            Self::Recorded(cause) => Some(cause.n),
            Self::Dropped => None,
        }
    }
}

impl Observer for Recorder {
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Received(from, frame) => {
                self.store_latest();
                self.latest = Some(Latest {
                    from: *from,
                    frame: (*frame).clone(),
                    info: None,
                });
            }
            Event::Parsed(envelope) => {
                if let Some(latest) = &mut self.latest {
                    latest.info = Some(MessageInfo::of(envelope, latest.frame.as_bytes()));
                }
            }
            Event::Sent(to, frame) => {
                self.store_latest();
                self.record_sent(*to, frame);
            }
            Event::Note(note) => {
                self.store_latest();
                self.record_note(note);
            }
            Event::Settled(waiting) => {
                self.store_latest();
                self.set_cause(*waiting);
            }
            Event::Ended(conversation::Cause::Panicked, _) => {
                let why = "a fault of the relay has ended the conversation".to_owned();
                self.handle.queue.lock().ended = Some(why);
            }
            _ => {}
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            envelopes: true,
            ..Needs::default()
        }
    }

    fn flush(&mut self) {
        let forwarded = std::mem::take(&mut self.forwarded);
        if self.now.is_some() || forwarded.iter().any(Option::is_some) {
            self.flush_forwarded(forwarded);
            self.now = None;
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_behind || self.handle.queue.policy == OverflowPolicy::Lossy {
            return Poll::Ready(());
        }
        let mut state = self.handle.queue.lock();
        if state.batch.has_room() || state.has_failed {
            drop(state);
            self.is_behind = false;
            return Poll::Ready(());
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.store_latest();
        self.flush();
        let at = self.handle.queue.now();
        let mut state = self.handle.queue.lock();
        state.batch.entries.extend(gap(&mut self.dropped, at));
        state.ended.get_or_insert_with(|| "over".to_owned());
        state.is_urgent = false;
        self.handle.notify(state);
    }
}

/// The entry about events that were dropped, if there are any.
fn gap(dropped: &mut (u64, u64), at: u64) -> Option<Entry> {
    let (events, bytes) = std::mem::take(dropped);
    if events == 0 {
        return None;
    }
    let reason = "the recorder was behind".to_owned();
    let what = EventKind::Gap {
        events,
        bytes,
        reason,
    };
    let item = Item::Event(Box::new(what), None);
    Some(Entry { at, item })
}

/// The event that represents a note in a recording.
fn event(note: &Note) -> EventKind {
    let text = note.to_string();
    match note {
        Note::AgentExited { exit } => EventKind::Process {
            event: "exit".to_owned(),
            detail: exit.to_string(),
        },
        Note::Stopping { signal } => EventKind::Process {
            event: "signal".to_owned(),
            detail: (*signal).to_owned(),
        },
        Note::Ended { side, how, .. } => EventKind::Link {
            side: *side,
            event: "end".to_owned(),
            detail: how.clone(),
        },
        Note::Recognised { side, .. } => EventKind::Link {
            side: *side,
            event: "dialect".to_owned(),
            detail: text,
        },
        _ => EventKind::Note {
            name: note.name().to_owned(),
            text,
            source: None,
        },
    }
}
