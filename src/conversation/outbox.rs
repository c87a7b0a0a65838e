//! What the core wants done: frames for each side, orders for the relay, notes for the taps.
//!
//! The relay empties it. A lane counts frames and bytes, and the relay stops reading a side while
//! the lane towards the other one is full. Not here: any deciding.

use std::collections::VecDeque;

use super::{Gist, Note};
use crate::jsonrpc::{Envelope, Farewell, Frame, Limits, Shape, Side};

/// What waits to be done.
#[derive(Debug)]
pub struct Outbox {
    lanes: [Lane; 2],
    orders: VecDeque<Order>,
    notes: VecDeque<Note>,
    gists: VecDeque<Gist>,
    wants_gists: bool,
    /// The envelope of the message heard last, when those are wanted.
    envelope: Option<Envelope>,
    wants_envelopes: bool,
    wants_trails: bool,
    frames: usize,
    bytes: usize,
}

/// Something to do to the agent's process.
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
    /// The most frames that have lately waited at once, slowly forgotten.
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

    /// Whether `from` may be read: there is room for what it says to the other side, and our own
    /// error replies to it have not piled up.
    ///
    /// A side is never held up by what the other side says to it, or two peers that both write
    /// before they read would wait for each other. Its own lane can only pass twice the bound
    /// when it sends what has to be refused and does not read the refusals.
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
            // A burst must not cost a quiet connection its memory for ever, nor a steady stream an
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

    /// How `to` is to be closed once its frames are out; `None` while it stays open.
    #[must_use]
    pub fn farewell(&self, to: Side) -> Option<Farewell> {
        self.lane(to).farewell
    }

    /// The next order.
    pub fn pop_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// The next note.
    pub fn pop_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// Has the gist of every message taken down from now on. Whoever asks for gists has to take
    /// them.
    pub const fn want_gists(&mut self) {
        self.wants_gists = true;
    }

    /// Has gists taken down, each with its trail.
    pub const fn want_trails(&mut self) {
        self.wants_gists = true;
        self.wants_trails = true;
    }

    /// The gist of the next message that was passed on.
    pub fn pop_gist(&mut self) -> Option<Gist> {
        self.gists.pop_front()
    }

    /// Keeps the envelope of each message heard from now on, until the next one is heard.
    pub const fn want_envelopes(&mut self) {
        self.wants_envelopes = true;
    }

    /// The envelope of what was heard last; `None` when that was no message, or nobody wants it.
    #[must_use]
    pub const fn envelope(&self) -> Option<&Envelope> {
        self.envelope.as_ref()
    }

    /// Keeps the envelope of what was heard, if anybody wants it.
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

    /// Takes down a gist, if anybody wants it.
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

    /// Takes back what never left for `to`.
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
