//! What the client has sent while the agent's version was not known.

use std::collections::VecDeque;
use std::time::Instant;

use jsonrpc::Frame;

/// Frames that wait, and what they weigh; then the client is not read.
const MAX_HELD: usize = 64;
const MAX_BYTES: usize = 1 << 20;

/// The frames that wait, in their order, and when each was received.
#[derive(Debug, Default)]
pub(super) struct HeldInput(VecDeque<(Frame, Instant)>);

impl HeldInput {
    pub(super) fn push(&mut self, frame: Frame, now: Instant) {
        self.0.push_back((frame, now));
    }

    pub(super) fn pop(&mut self) -> Option<(Frame, Instant)> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The frames that wait.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.0.iter().map(|(frame, _)| frame)
    }

    /// Whether no more is taken.
    pub(super) fn is_full(&self) -> bool {
        let weight = || {
            self.0
                .iter()
                .map(|(frame, _)| frame.weight())
                .sum::<usize>()
        };
        self.0.len() >= MAX_HELD || weight() >= MAX_BYTES
    }
}
