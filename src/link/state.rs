//! One end of a link: numbers what it sends, checks what it receives, and acknowledges it.

use std::time::Duration;

use super::replay_buffer::{Exhausted, ReplayBuffer, WrongAck};
use crate::jsonrpc::Frame;

/// An acknowledgement is due after so many messages, so many bytes, or so long, whichever is first.
const ACK_FRAMES: u32 = 32;
const ACK_BYTES: usize = 64 << 10;
const ACK_DELAY: Duration = Duration::from_millis(50);

/// Bytes beyond the limit that are for cancellations and answers, so that a full link can be
/// cancelled.
const RESERVE: usize = 64 << 10;

/// One end of a link.
#[derive(Debug)]
pub struct LinkState {
    /// The number of the current attachment; 0 before the first.
    generation: u64,
    is_attached: bool,
    sent: ReplayBuffer,
    /// The bytes that may wait for acknowledgements.
    limit: usize,
    /// The bytes that the peer allows to be in flight.
    window: u64,
    /// The number that is received next.
    expected: u64,
    unacknowledged: Unacknowledged,
    counts: LinkCounts,
}

/// What was received since the last acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Unacknowledged {
    frames: u32,
    bytes: usize,
    /// When the first of them was received.
    since: Option<Duration>,
}

/// What has happened on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Attachments.
    pub attached: u64,
    /// Messages that were written again.
    pub repeated: u64,
    /// Messages that came twice, and were dropped.
    pub duplicates: u64,
    /// Messages of an attachment that was replaced.
    pub stale: u64,
    /// Messages that came before one that is missing.
    pub gaps: u64,
}

/// What becomes of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is the next one, and is passed on.
    Deliver,
    /// It was received before, and is dropped.
    Duplicate,
    /// It is from an attachment that was replaced, and is dropped.
    Stale,
    /// One before it is missing: the attachment has to end.
    Gap,
}

/// Why an attachment is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// Its generation is not above the current one.
    #[error("generation {0} is not above the current one, {1}")]
    Generation(u64, u64),
    /// The peer expects a message that it has acknowledged before.
    #[error("the peer expects message {0} again, which it has acknowledged")]
    Behind(u64),
    /// The peer expects a message after one that was never sent.
    #[error(transparent)]
    Ahead(#[from] WrongAck),
}

impl LinkState {
    /// A new link on which `limit` bytes may wait for acknowledgements.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self::with_numbers(limit, 1)
    }

    /// The same, with messages in both directions beginning at number `first`.
    #[must_use]
    pub fn with_numbers(limit: usize, first: u64) -> Self {
        Self {
            generation: 0,
            is_attached: false,
            sent: ReplayBuffer::beginning_at(first),
            limit,
            window: 0,
            expected: first,
            unacknowledged: Unacknowledged::default(),
            counts: LinkCounts::default(),
        }
    }

    /// Begins attachment number `generation`, whose peer expects message `rx` next and allows
    /// `window` bytes in flight. What it has not handled is written again.
    ///
    /// # Errors
    /// The attachment does not fit this state, which is unchanged then.
    pub fn attach(&mut self, generation: u64, rx: u64, window: u64) -> Result<(), AttachError> {
        if generation <= self.generation {
            return Err(AttachError::Generation(generation, self.generation));
        }
        if rx < self.sent.first() {
            return Err(AttachError::Behind(rx));
        }
        self.sent.acknowledge(rx - 1)?;
        self.counts.repeated += self.sent.rewind() as u64;
        self.counts.attached += 1;
        self.generation = generation;
        self.is_attached = true;
        self.window = window;
        // The greeting has acknowledged everything.
        self.unacknowledged = Unacknowledged::default();
        Ok(())
    }

    /// The attachment of this generation is lost. Returns whether it was the current one.
    pub fn detach(&mut self, generation: u64) -> bool {
        let is_current = self.is_attached && generation == self.generation;
        self.is_attached &= !is_current;
        is_current
    }

    /// Whether another message may be sent; an `urgent` one, a cancellation or an answer, may use
    /// the reserve.
    #[must_use]
    pub const fn has_room(&self, urgent: bool) -> bool {
        let reserve = if urgent { RESERVE } else { 0 };
        self.sent.bytes() < self.limit + reserve
    }

    /// Sends a message: it is written on the current attachment or on the next one.
    ///
    /// # Errors
    /// There are no more numbers.
    pub fn send(&mut self, frame: Frame) -> Result<u64, Exhausted> {
        self.sent.push(frame)
    }

    /// The next message to write on the current attachment, with its number and the acknowledgement
    /// to write with it.
    pub fn next_to_write(&mut self) -> Option<(u64, u64, Frame)> {
        if !self.is_attached {
            return None;
        }
        let (seq, frame) = self.sent.next(self.window)?;
        Some((seq, self.acknowledge(), frame))
    }

    /// Receives message number `seq` of `bytes` bytes on the attachment of `generation` at `now`.
    pub fn receive(&mut self, generation: u64, seq: u64, bytes: usize, now: Duration) -> Received {
        if generation != self.generation || !self.is_attached {
            self.counts.stale += 1;
            return Received::Stale;
        }
        if seq < self.expected {
            self.counts.duplicates += 1;
            return Received::Duplicate;
        }
        if seq > self.expected {
            self.counts.gaps += 1;
            return Received::Gap;
        }
        self.expected += 1;
        let unacknowledged = &mut self.unacknowledged;
        unacknowledged.frames += 1;
        unacknowledged.bytes += bytes;
        unacknowledged.since.get_or_insert(now);
        Received::Deliver
    }

    /// The peer has handled the messages up to number `ack`, as the attachment of `generation`
    /// says; `window` is its window, if that is said.
    ///
    /// # Errors
    /// It was never sent such a message; the attachment has to end.
    pub fn acknowledged(
        &mut self,
        generation: u64,
        ack: u64,
        window: Option<u64>,
    ) -> Result<(), WrongAck> {
        if generation == self.generation && self.is_attached {
            self.sent.acknowledge(ack)?;
            self.window = window.unwrap_or(self.window);
        }
        Ok(())
    }

    /// When an acknowledgement has to be written alone; `None` if nothing is to be acknowledged, or
    /// there is no attachment.
    #[must_use]
    pub fn ack_due(&self) -> Option<Duration> {
        let Unacknowledged {
            frames,
            bytes,
            since,
        } = self.unacknowledged;
        let since = since.filter(|_| self.is_attached)?;
        match frames >= ACK_FRAMES || bytes >= ACK_BYTES {
            true => Some(since),
            false => Some(since + ACK_DELAY),
        }
    }

    /// The number up to which everything was handled, which is acknowledged with this.
    pub fn acknowledge(&mut self) -> u64 {
        self.unacknowledged = Unacknowledged::default();
        self.expected - 1
    }

    /// The number that is received next, for the greeting of an attachment.
    #[must_use]
    pub const fn expected(&self) -> u64 {
        self.expected
    }

    /// The number of the current attachment, or of the last one.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The messages that were not acknowledged.
    #[must_use]
    pub const fn sent(&self) -> &ReplayBuffer {
        &self.sent
    }

    /// What has happened.
    #[must_use]
    pub const fn counts(&self) -> &LinkCounts {
        &self.counts
    }
}
