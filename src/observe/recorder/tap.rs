//! The recorder of one conversation: puts events into the queue, and tracks which frame caused
//! which.
//!
//! A frame that passes unchanged occupies the same memory as the received one, so it is recognised
//! by its address. The received frame is held until then, so that no other one can have its
//! address.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::facts::Told;
use super::queue::{Batch, Entry, Origin, Policy, Run, Seen};
use super::remarks::Remarks;
use crate::conversation::Note;
use crate::jsonrpc::{Frame, Side};
use crate::observe::{Sight, Tap};
use crate::recording::What;

/// Records one conversation. Dropping it ends the recording.
#[derive(Debug)]
pub struct Recorder {
    remarks: Remarks,
    /// The number of the next received frame.
    next: u64,
    /// How many frames each side has sent.
    heard: [u64; 2],
    /// The frame received last, until its facts are known.
    fresh: Option<Fresh>,
    /// The frame received last, until everything that it causes is known.
    cause: Option<Led>,
    /// What caused the frames that wait, by the side they wait for.
    lanes: [VecDeque<Option<Led>>; 2],
    /// The rules that changed the frame received last.
    rules: Vec<String>,
    /// Frames forwarded unchanged that the queue does not know of yet, by side.
    passed: [Option<Run>; 2],
    /// The clock, read once per turn.
    now: Option<u64>,
    /// Events and bytes dropped since the last recorded event.
    lost: (u64, u64),
    /// The writer was found to be behind, and may still be.
    behind: bool,
}

/// What caused a frame. Without a cause, the relay made the frame itself.
#[derive(Clone, Debug)]
enum Led {
    By(Cause),
    /// A frame that was dropped; what it causes is dropped, too, for without a cause it would
    /// appear to be made by the relay.
    ByLost,
}

/// The frame received last.
#[derive(Debug)]
struct Fresh {
    from: Side,
    frame: Frame,
    told: Option<Told>,
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
    pub(super) fn new(remarks: Remarks) -> Self {
        Self {
            remarks,
            next: 0,
            heard: [0; 2],
            fresh: None,
            cause: None,
            lanes: Default::default(),
            rules: Vec::new(),
            passed: [None; 2],
            now: None,
            lost: (0, 0),
            behind: false,
        }
    }

    /// Records the frame received last, whose facts are now complete.
    fn keep(&mut self) {
        let Some(Fresh { from, frame, told }) = self.fresh.take() else {
            return;
        };
        let place = self.heard[from as usize];
        self.heard[from as usize] += 1;
        let kept = self.push(frame.len(), |batch| {
            Seen::Heard(from, batch.keep(&frame), told)
        });
        if !kept {
            self.cause = Some(Led::ByLost);
            return;
        }
        self.cause = Some(Led::By(Cause {
            n: self.next,
            place,
            frame,
            rules: Vec::new(),
        }));
        self.next += 1;
    }

    fn say(&mut self, to: Side, frame: &Frame) {
        let cause = self.lanes[to as usize].pop_front().flatten();
        let cause = match cause {
            Some(Led::By(cause)) => cause,
            Some(Led::ByLost) => return self.leave_out(frame.len()),
            None => {
                self.push(frame.len(), |batch| Seen::Said(to, None, batch.keep(frame)));
                return;
            }
        };
        let (own, other) = (cause.frame.as_bytes(), frame.as_bytes());
        if own.as_ptr() == other.as_ptr() && own.len() == other.len() {
            let run = Run::of(cause.n, cause.place);
            let passed = &mut self.passed[to as usize];
            if !passed.as_mut().is_some_and(|passed| passed.goes_on(run)) {
                let before = std::mem::take(&mut self.passed);
                self.passed[to as usize] = Some(run);
                if before.iter().any(Option::is_some) {
                    self.hand_on(before);
                }
            }
            return;
        }
        let Cause {
            n,
            rules,
            frame: heard,
            ..
        } = cause;
        let origin = Box::new(Origin {
            n,
            frame: heard,
            rules,
        });
        self.push(frame.len(), |batch| {
            Seen::Said(to, Some(origin), batch.keep(frame))
        });
    }

    fn note(&mut self, note: &Note) {
        if let Note::Translated { rules, .. } = note {
            self.rules.extend(rules.iter().map(ToString::to_string));
            return;
        }
        let cause = self.cause.as_ref().and_then(Led::number);
        self.push(0, |_| Seen::Event(Box::new(event(note)), cause));
    }

    /// Assigns the cause to the frames that were queued since the last call.
    fn settle(&mut self, waiting: [usize; 2]) {
        let mut cause = self.cause.take();
        let rules = std::mem::take(&mut self.rules);
        let mut led = false;
        for (lane, waiting) in self.lanes.iter_mut().zip(waiting) {
            lane.truncate(waiting);
            led |= lane.len() < waiting;
        }
        if let Some(Led::By(cause)) = &mut cause
            && led
        {
            cause.rules = rules;
        } else if !rules.is_empty() {
            // The message was dropped by the rules.
            let n = cause.as_ref().and_then(Led::number);
            for text in rules {
                let name = "translated".to_owned();
                let of = None;
                let note = Box::new(What::Note { name, text, of });
                self.push(0, |_| Seen::Event(note, n));
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
    fn hand_on(&mut self, passed: [Option<Run>; 2]) {
        let (at, oldest) = (self.now(), self.oldest());
        let mut state = self.remarks.queue.lock();
        if !state.broken {
            for (to, run) in [Side::Client, Side::Agent].into_iter().zip(passed) {
                if let Some(run) = run {
                    state.batch.pass(to, run, at);
                }
            }
            state.batch.oldest = oldest;
            if !state.batch.is_empty() {
                self.remarks.list(state);
            }
        }
    }

    /// The time of this turn. The clock is read once per turn, because that costs as much as
    /// copying a message.
    fn now(&mut self) -> u64 {
        *self.now.get_or_insert_with(|| self.remarks.now())
    }

    /// Adds an event to the queue; `false` when it was dropped.
    fn push(&mut self, bytes: usize, what: impl FnOnce(&mut Batch) -> Seen) -> bool {
        let at = self.now();
        let mut state = self.remarks.queue.lock();
        if state.broken {
            self.remarks.tally.left_out();
            return false;
        }
        let room = state.batch.has_room();
        if !room && self.remarks.policy == Policy::Lossy {
            drop(state);
            self.leave_out(bytes);
            return false;
        }
        self.behind = !room;
        let (events, bytes) = std::mem::take(&mut self.lost);
        if events > 0 {
            let why = "the recorder was behind".to_owned();
            let seen = Seen::Event(Box::new(What::Gap { events, bytes, why }), None);
            state.batch.entries.push(Entry { at, seen });
        }
        let seen = what(&mut state.batch);
        state.batch.entries.push(Entry { at, seen });
        self.remarks.list(state);
        true
    }

    /// Counts an event that is not recorded.
    fn leave_out(&mut self, bytes: usize) {
        self.remarks.tally.left_out();
        self.lost.0 += 1;
        self.lost.1 += bytes as u64;
    }

    /// The oldest received frame that may still be referenced.
    fn oldest(&self) -> u64 {
        let first = |lane: &VecDeque<Option<Led>>| lane.iter().flatten().find_map(Led::number);
        let waiting = self.lanes.iter().filter_map(first);
        let waiting = waiting.chain(self.cause.as_ref().and_then(Led::number));
        let passed = self.passed.iter().flatten().map(|run| run.first);
        waiting.chain(passed).min().unwrap_or(self.next)
    }
}

impl Led {
    /// The number of the received frame.
    const fn number(&self) -> Option<u64> {
        match self {
            Self::By(cause) => Some(cause.n),
            Self::ByLost => None,
        }
    }
}

impl Tap for Recorder {
    fn see(&mut self, sight: &Sight<'_>) {
        match sight {
            Sight::Heard(from, frame) => {
                self.keep();
                self.fresh = Some(Fresh {
                    from: *from,
                    frame: (*frame).clone(),
                    told: None,
                });
            }
            Sight::Opened(envelope) => {
                if let Some(fresh) = &mut self.fresh {
                    fresh.told = Told::of(envelope, fresh.frame.as_bytes());
                }
            }
            Sight::Said(to, frame) => {
                self.keep();
                self.say(*to, frame);
            }
            Sight::Note(note) => {
                self.keep();
                self.note(note);
            }
            Sight::Settled(waiting) => {
                self.keep();
                self.settle(*waiting);
            }
        }
    }

    fn wants_envelopes(&self) -> bool {
        true
    }

    fn rest(&mut self) {
        let passed = std::mem::take(&mut self.passed);
        if self.now.is_some() || passed.iter().any(Option::is_some) {
            self.hand_on(passed);
            self.now = None;
        }
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.behind || self.remarks.policy == Policy::Lossy {
            return Poll::Ready(());
        }
        let mut state = self.remarks.queue.lock();
        if state.batch.has_room() || state.broken {
            drop(state);
            self.behind = false;
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
        self.keep();
        let passed = std::mem::take(&mut self.passed);
        self.hand_on(passed);
        let (events, bytes) = self.lost;
        let at = self.remarks.now();
        let mut state = self.remarks.queue.lock();
        if events > 0 {
            let why = "the recorder was behind".to_owned();
            let seen = Seen::Event(Box::new(What::Gap { events, bytes, why }), None);
            state.batch.entries.push(Entry { at, seen });
        }
        state.over.get_or_insert_with(|| "over".to_owned());
        state.hurried = false;
        self.remarks.list(state);
    }
}

/// The event that represents a note in a recording.
fn event(note: &Note) -> What {
    let text = note.to_string();
    match note {
        Note::AgentExited { exit } => What::Process {
            event: "exit".to_owned(),
            what: exit.to_string(),
        },
        Note::Stopping { signal } => What::Process {
            event: "signal".to_owned(),
            what: (*signal).to_owned(),
        },
        Note::Ended { side, how, .. } => What::Link {
            side: *side,
            event: "end".to_owned(),
            what: how.clone(),
        },
        Note::Recognised { side, .. } => What::Link {
            side: *side,
            event: "dialect".to_owned(),
            what: text,
        },
        _ => What::Note {
            name: note.name().to_owned(),
            text,
            of: None,
        },
    }
}
