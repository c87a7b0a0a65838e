//! What the client has sent while the agent's version was not known.

use std::collections::VecDeque;
use std::time::Instant;

use crate::jsonrpc::Frame;

/// Frames that wait; then the client is not read.
const MAX_HELD: usize = 64;

/// The input that waits, in its order.
#[derive(Debug, Default)]
pub(super) struct HeldInput {
    frames: VecDeque<(Frame, Instant)>,
    /// The client has ended its stream, which waits until then.
    end: Option<Instant>,
}

/// An input of the client.
#[derive(Debug)]
pub(super) enum Held {
    /// A frame, and when it was received.
    Frame(Frame, Instant),
    /// The end of its stream.
    End(Instant),
}

impl HeldInput {
    pub(super) fn push(&mut self, frame: Frame, now: Instant) {
        self.frames.push_back((frame, now));
    }

    /// The client has ended its stream, which waits until then.
    pub(super) const fn end(&mut self, until: Instant) {
        self.end = Some(until);
    }

    /// The next input.
    pub(super) fn pop(&mut self) -> Option<Held> {
        match self.frames.pop_front() {
            Some((frame, now)) => Some(Held::Frame(frame, now)),
            None => self.end.take().map(Held::End),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether no more is taken.
    pub(super) fn is_full(&self) -> bool {
        self.frames.len() >= MAX_HELD
    }

    /// Until when the end of the client's stream waits.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.end
    }
}
