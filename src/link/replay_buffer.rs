//! The messages that were sent on a link and not acknowledged yet, in their order.

use std::collections::VecDeque;

use crate::jsonrpc::Frame;

/// Messages until the peer has acknowledged them, each with its number.
#[derive(Debug)]
pub struct ReplayBuffer {
    /// The number of the first one that is kept; numbers are consecutive.
    first: u64,
    frames: VecDeque<Frame>,
    bytes: usize,
    /// How many of them were written on the current attachment, and their bytes.
    written: usize,
    written_bytes: usize,
}

/// All numbers are used: the link has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link has no more numbers for messages")]
pub struct Exhausted;

/// An acknowledgement of messages that were never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer acknowledges message {ack}, and {last} is the last that was sent")]
pub struct WrongAck {
    /// What the peer acknowledges.
    pub ack: u64,
    /// The number of the last message.
    pub last: u64,
}

impl Default for ReplayBuffer {
    fn default() -> Self {
        Self::beginning_at(1)
    }
}

impl ReplayBuffer {
    /// A buffer whose first message gets the number `first`.
    #[must_use]
    pub const fn beginning_at(first: u64) -> Self {
        Self {
            first,
            frames: VecDeque::new(),
            bytes: 0,
            written: 0,
            written_bytes: 0,
        }
    }

    /// Adds a message and returns its number.
    ///
    /// # Errors
    /// There are no more numbers; the last one is never used.
    pub fn push(&mut self, frame: Frame) -> Result<u64, Exhausted> {
        let number = self.next_number();
        if number == u64::MAX {
            return Err(Exhausted);
        }
        self.bytes += frame.len();
        self.frames.push_back(frame);
        Ok(number)
    }

    /// The number that the next message gets.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// The number of the first message that is kept, or that of the next one if there is none.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Drops the messages up to number `ack`.
    ///
    /// # Errors
    /// A message of that number was never pushed. Nothing is dropped then.
    pub fn acknowledge(&mut self, ack: u64) -> Result<(), WrongAck> {
        let last = self.next_number() - 1;
        if ack > last {
            return Err(WrongAck { ack, last });
        }
        while self.first <= ack {
            let Some(frame) = self.frames.pop_front() else {
                break;
            };
            self.first += 1;
            self.bytes -= frame.len();
            if self.written > 0 {
                self.written -= 1;
                self.written_bytes -= frame.len();
            }
        }
        Ok(())
    }

    /// The next message to write on the current attachment, with its number, unless more than
    /// `window` bytes would be in flight. One message is always allowed.
    pub fn next(&mut self, window: u64) -> Option<(u64, Frame)> {
        let frame = self.frames.get(self.written)?;
        let in_flight = (self.written_bytes + frame.len()) as u64;
        if self.written > 0 && in_flight > window {
            return None;
        }
        let number = self.first + self.written as u64;
        self.written += 1;
        self.written_bytes += frame.len();
        Some((number, frame.clone()))
    }

    /// Begins to write again from the first message that is kept, on a new attachment. Returns how
    /// many had been written.
    pub const fn rewind(&mut self) -> usize {
        let written = self.written;
        self.written = 0;
        self.written_bytes = 0;
        written
    }

    /// The bytes that are kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many messages are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether a message was not written on the current attachment.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        self.written < self.frames.len()
    }

    /// Whether everything was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}
