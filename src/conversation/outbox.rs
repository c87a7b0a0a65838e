//! The output of the conversation: frames for each side, commands for the relay, notes for
//! observers.
//!
//! The relay empties it. A lane counts frames and bytes, and the relay stops reading a side while
//! the lane to the other one is full.

use std::collections::VecDeque;

use super::{MessageSummary, Note};
use jsonrpc::{CloseReason, Envelope, Frame, Limits, Scanned, Side};

/// The actions that wait to be done.
#[derive(Debug)]
pub struct Outbox {
    lanes: [Lane; 2],
    commands: VecDeque<Command>,
    notes: VecDeque<Note>,
    summaries: VecDeque<MessageSummary>,
    /// The envelope of the last message received, when envelopes are needed.
    envelope: Option<Envelope>,
    needs: Needs,
    frames: usize,
    bytes: usize,
}

/// What the observers of a conversation need besides its frames and notes; it is made for them
/// alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Summaries of messages, and statistics.
    pub summaries: bool,
    /// Trace contexts in the summaries.
    pub traces: bool,
    /// Envelopes.
    pub envelopes: bool,
}

/// An action on the agent's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Ask the agent's process tree to end (SIGTERM).
    Terminate,
    /// End the agent's process tree (SIGKILL).
    Kill,
    /// Start, or connect to, the agent again, and drop the one before. What waits for the agent is
    /// for the new one.
    RestartAgent,
}

/// What waits for one side.
#[derive(Debug, Default)]
struct Lane {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The most frames that have recently waited at once, decaying slowly.
    recent: usize,
    close_reason: Option<CloseReason>,
}

impl Needs {
    /// What either of the two needs.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            summaries: self.summaries || other.summaries,
            traces: self.traces || other.traces,
            envelopes: self.envelopes || other.envelopes,
        }
    }
}

impl Lane {
    /// A burst must not cost an idle connection its memory for ever, nor a steady stream an
    /// allocation for each batch.
    #[inline(never)]
    fn shrink(&mut self) {
        self.recent -= self.recent.div_ceil(8);
        let capacity = (4 * self.recent).max(64);
        if self.frames.capacity() > capacity {
            self.frames.shrink_to(capacity);
        }
    }
}

impl Outbox {
    /// An empty outbox with the bounds of `limits`.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            lanes: Default::default(),
            commands: VecDeque::new(),
            notes: VecDeque::new(),
            summaries: VecDeque::new(),
            envelope: None,
            needs: Needs::default(),
            frames: limits.queue_frames,
            bytes: limits.queue_bytes,
        }
    }

    /// Whether `from` may be read: there is room for its messages to the other side, and our own
    /// error replies to it do not accumulate.
    ///
    /// A side is never blocked by what the other side sends to it, or two peers that both write
    /// before they read would wait for each other. Its own lane can only pass twice the bound when
    /// it sends what has to be refused and does not read the errors.
    #[must_use]
    pub fn may_read(&self, from: Side) -> bool {
        self.has_room(from.other()) && self.lane(from).frames.len() < 2 * self.frames
    }

    /// Whether the lane to `to` has room; if not, `to` is slow.
    pub(super) fn has_room(&self, to: Side) -> bool {
        let lane = self.lane(to);
        lane.frames.len() < self.frames && lane.bytes < self.bytes
    }

    /// The next frame for `to`.
    #[inline]
    pub fn pop(&mut self, to: Side) -> Option<Frame> {
        let lane = self.lane_mut(to);
        let frame = lane.frames.pop_front()?;
        lane.bytes -= frame.len();
        if lane.frames.is_empty() {
            lane.shrink();
        }
        Some(frame)
    }

    /// How many frames wait for `to`.
    #[must_use]
    pub fn waiting(&self, to: Side) -> usize {
        self.lane(to).frames.len()
    }

    /// How many bytes wait for `to`.
    #[must_use]
    pub fn waiting_bytes(&self, to: Side) -> usize {
        self.lane(to).bytes
    }

    /// Whether frames wait for `to`.
    #[must_use]
    pub fn has_frames(&self, to: Side) -> bool {
        !self.lane(to).frames.is_empty()
    }

    /// The reason with which `to` is closed once its frames are sent; `None` while it stays open.
    #[must_use]
    pub fn close_reason(&self, to: Side) -> Option<CloseReason> {
        self.lane(to).close_reason
    }

    /// The next command.
    pub fn pop_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// The next note.
    pub fn pop_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// Sets what is made from now on. The caller has to take the summaries.
    pub const fn set_needs(&mut self, needs: Needs) {
        self.needs = needs;
    }

    /// What is made.
    #[must_use]
    pub const fn needs(&self) -> Needs {
        self.needs
    }

    /// The summary of the next message that was passed on.
    pub fn pop_summary(&mut self) -> Option<MessageSummary> {
        self.summaries.pop_front()
    }

    /// The envelope of the last message; `None` when that was not valid, or envelopes are not
    /// needed.
    #[must_use]
    pub const fn envelope(&self) -> Option<&Envelope> {
        self.envelope.as_ref()
    }

    /// Keeps the envelope of a received message, if envelopes are needed.
    pub(super) fn record_envelope(&mut self, scanned: &Scanned) {
        if self.needs.envelopes {
            self.envelope = match scanned {
                Scanned::Message(envelope) => Some(*envelope),
                _ => None,
            };
        }
    }

    /// Adds a summary, if they are needed.
    #[inline(always)]
    pub(super) fn summarise(&mut self, summary: impl FnOnce() -> MessageSummary) {
        if self.needs.summaries {
            self.summaries.push_back(summary());
        }
    }

    /// Adds the summary of a request, which was made because summaries are needed.
    pub(super) fn extend_summaries(&mut self, summary: Option<MessageSummary>) {
        self.summaries.extend(summary);
    }

    pub(super) fn send(&mut self, to: Side, frame: Frame) {
        let lane = self.lane_mut(to);
        lane.bytes += frame.len();
        lane.frames.push_back(frame);
        lane.recent = lane.recent.max(lane.frames.len());
    }

    pub(super) fn send_all(&mut self, to: Side, frames: Vec<Frame>) {
        for frame in frames {
            self.send(to, frame);
        }
    }

    pub(super) fn close(&mut self, to: Side, why: CloseReason) {
        self.lane_mut(to).close_reason.get_or_insert(why);
    }

    /// `to` is another peer from now on, which nothing waits for yet.
    pub(super) fn reopen(&mut self, to: Side) {
        self.lane_mut(to).close_reason = None;
    }

    pub(super) fn command(&mut self, command: Command) {
        self.commands.push_back(command);
    }

    pub(super) fn note(&mut self, note: Note) {
        self.notes.push_back(note);
    }

    /// Removes and returns what was not sent to `to` yet.
    pub(super) fn take_unsent(&mut self, to: Side) -> VecDeque<Frame> {
        let lane = self.lane_mut(to);
        lane.bytes = 0;
        std::mem::take(&mut lane.frames)
    }

    fn lane(&self, side: Side) -> &Lane {
        &self.lanes[side as usize]
    }

    fn lane_mut(&mut self, side: Side) -> &mut Lane {
        &mut self.lanes[side as usize]
    }
}
