//! Messages in their order, kept to be sent again: those of a link until they are acknowledged,
//! those of an event stream or a session within its owner's bounds.

use std::collections::VecDeque;

use jsonrpc::Frame;

/// Messages for which an idle buffer has room.
const SMALL: usize = 16;

/// What a replay buffer keeps.
pub trait Size {
    /// What it counts for, in bytes; see [`Frame::weight`].
    fn size(&self) -> usize;
}

/// Messages until they are dropped, each with its number: first those that were written, then those
/// that wait.
#[derive(Debug)]
pub struct ReplayBuffer<T = Frame> {
    /// The number of the first one that is kept; numbers are consecutive.
    first: u64,
    entries: VecDeque<T>,
    bytes: usize,
    /// How many of them were written, on a link's current attachment, and their bytes.
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

impl Size for Frame {
    fn size(&self) -> usize {
        self.weight()
    }
}

impl<T: Size> Default for ReplayBuffer<T> {
    fn default() -> Self {
        Self::beginning_at(1)
    }
}

impl<T: Size> ReplayBuffer<T> {
    /// A buffer whose first message gets the number `first`.
    #[must_use]
    pub const fn beginning_at(first: u64) -> Self {
        Self {
            first,
            entries: VecDeque::new(),
            bytes: 0,
            written: 0,
            written_bytes: 0,
        }
    }

    /// Adds a message and returns its number.
    ///
    /// # Errors
    /// There are no more numbers; the last one is never used.
    pub fn push(&mut self, entry: T) -> Result<u64, Exhausted> {
        let number = self.next_number();
        if number == u64::MAX {
            return Err(Exhausted);
        }
        self.append(entry);
        Ok(number)
    }

    /// Adds a message to a buffer that began too low to run out of numbers.
    pub fn append(&mut self, entry: T) {
        self.bytes += entry.size();
        self.entries.push_back(entry);
    }

    /// The number that the next message gets.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.first + self.entries.len() as u64
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
            self.pop();
        }
        Ok(())
    }

    /// Drops the oldest message that was written, and returns its size; `None` if there is none.
    pub fn drop_oldest(&mut self) -> Option<usize> {
        (self.written > 0).then(|| self.pop())
    }

    /// Takes back the messages that were not written: their numbers are used again.
    pub fn take_unwritten(&mut self) -> impl Iterator<Item = T> {
        self.bytes = self.written_bytes;
        self.entries.drain(self.written..)
    }

    /// The next message to write, with its number, unless more than `window` bytes would be in
    /// flight. One message is always allowed.
    pub fn next(&mut self, window: u64) -> Option<(u64, T)>
    where
        T: Clone,
    {
        self.next_ref(window).map(|(n, entry)| (n, entry.clone()))
    }

    /// The same as [`Self::next`], borrowed.
    pub fn next_ref(&mut self, window: u64) -> Option<(u64, &T)> {
        let number = self.position();
        let entry = self.entries.get(self.written)?;
        let in_flight = self.written_bytes + entry.size();
        if self.written > 0 && in_flight as u64 > window {
            return None;
        }
        self.written += 1;
        self.written_bytes = in_flight;
        Some((number, entry))
    }

    /// The number of the message that is written next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.first + self.written as u64
    }

    /// Begins to write again from the first message that is kept, on a new attachment. Returns how
    /// many had been written.
    pub fn rewind(&mut self) -> usize {
        self.written_bytes = 0;
        std::mem::take(&mut self.written)
    }

    /// Begins to write again from message `number`. Returns the bytes that had been written of it
    /// and those after it; `None`, and no change, when it is not kept or its turn has not come.
    pub fn rewind_to(&mut self, number: u64) -> Option<usize> {
        let again = usize::try_from(self.position().checked_sub(number)?).ok()?;
        let written = self.written.checked_sub(again)?;
        let bytes = self.written().skip(written).map(Size::size).sum();
        self.written = written;
        self.written_bytes -= bytes;
        Some(bytes)
    }

    /// The messages that were written.
    pub fn written(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.entries.range(..self.written)
    }

    /// The bytes that are kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many messages are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether a message waits to be written.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        self.written < self.entries.len()
    }

    /// Gives back memory that a burst has needed.
    pub fn shrink(&mut self) {
        self.entries.shrink_to(SMALL);
    }

    /// Whether no message is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops the first message, written or not, and returns its size.
    fn pop(&mut self) -> usize {
        let size = self.entries.pop_front().map_or(0, |entry| entry.size());
        self.first += 1;
        self.bytes -= size;
        // Both are 0 when it was not written.
        self.written = self.written.saturating_sub(1);
        self.written_bytes = self.written_bytes.saturating_sub(size);
        size
    }
}
