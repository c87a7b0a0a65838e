//! What the conversation wants done: frames for each side, commands for the relay, notes for
//! observers.
//!
//! The relay empties it. A lane counts frames and bytes, and the relay stops reading a side while
//! the lane to the other one is full.

use std::collections::VecDeque;

use super::{Gist, Note};
use crate::jsonrpc::{Envelope, Farewell, Frame, Limits, Shape, Side};

/// The actions that wait to be done.
#[derive(Debug)]
pub struct Outbox {
    lanes: [Lane; 2],
    orders: VecDeque<Order>,
    notes: VecDeque<Note>,
    gists: VecDeque<Gist>,
    wants_gists: bool,
    /// The envelope of the last message received, when envelopes are wanted.
    envelope: Option<Envelope>,
    wants_envelopes: bool,
    wants_trails: bool,
    frames: usize,
    bytes: usize,
}

/// An action on the agent's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ask the agent's process tree to end (SIGTERM).
    Terminate,
    /// End the agent's process tree (SIGKILL).
    Kill,
}

/// What waits for one side.
#[derive(Debug, Default)]
struct Lane {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The most frames that have recently waited at once, decaying slowly.
    recent: usize,
    farewell: Option<Farewell>,
}

impl Outbox {
    /// An empty outbox with the bounds of `limits`.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            lanes: Default::default(),
            orders: VecDeque::new(),
            notes: VecDeque::new(),
            gists: VecDeque::new(),
            wants_gists: false,
            envelope: None,
            wants_envelopes: false,
            wants_trails: false,
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
    pub fn pop(&mut self, to: Side) -> Option<Frame> {
        let lane = self.lane_mut(to);
        let frame = lane.frames.pop_front()?;
        lane.bytes -= frame.len();
        if lane.frames.is_empty() {
            // A burst must not cost an idle connection its memory for ever, nor a steady stream an
            // allocation for each batch.
            lane.recent -= lane.recent.div_ceil(8);
            let kept = (4 * lane.recent).max(64);
            if lane.frames.capacity() > kept {
                lane.frames.shrink_to(kept);
            }
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
    pub fn farewell(&self, to: Side) -> Option<Farewell> {
        self.lane(to).farewell
    }

    /// The next command.
    pub fn pop_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// The next note.
    pub fn pop_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// Has every message summarised from now on. The caller has to take the summaries.
    pub const fn want_gists(&mut self) {
        self.wants_gists = true;
    }

    /// Has summaries made, each with its trace context.
    pub const fn want_trails(&mut self) {
        self.wants_gists = true;
        self.wants_trails = true;
    }

    /// The summary of the next message that was passed on.
    pub fn pop_gist(&mut self) -> Option<Gist> {
        self.gists.pop_front()
    }

    /// Keeps the envelope of each message received from now on, until the next one.
    pub const fn want_envelopes(&mut self) {
        self.wants_envelopes = true;
    }

    /// The envelope of the last message; `None` when that was not valid, or envelopes are not
    /// wanted.
    #[must_use]
    pub const fn envelope(&self) -> Option<&Envelope> {
        self.envelope.as_ref()
    }

    /// Keeps the envelope of a received message, if envelopes are wanted.
    pub(super) fn heard(&mut self, shape: &Shape) {
        if self.wants_envelopes {
            self.envelope = match shape {
                Shape::One(envelope) => Some(*envelope),
                _ => None,
            };
        }
    }

    pub(super) const fn wants_gists(&self) -> bool {
        self.wants_gists
    }

    pub(super) const fn wants_trails(&self) -> bool {
        self.wants_trails
    }

    /// Adds a summary, if they are wanted.
    pub(super) fn gist(&mut self, gist: impl FnOnce() -> Gist) {
        if self.wants_gists {
            self.gists.push_back(gist());
        }
    }

    pub(super) fn say(&mut self, to: Side, frame: Frame) {
        let lane = self.lane_mut(to);
        lane.bytes += frame.len();
        lane.frames.push_back(frame);
        lane.recent = lane.recent.max(lane.frames.len());
    }

    pub(super) fn close(&mut self, to: Side, why: Farewell) {
        self.lane_mut(to).farewell.get_or_insert(why);
    }

    pub(super) fn order(&mut self, order: Order) {
        self.orders.push_back(order);
    }

    pub(super) fn note(&mut self, note: Note) {
        self.notes.push_back(note);
    }

    /// Removes and returns what was not sent to `to` yet.
    pub(super) fn take_back(&mut self, to: Side) -> VecDeque<Frame> {
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
