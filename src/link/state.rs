//! One end of a link: numbers what it sends, checks what it receives, and acknowledges it.

use std::collections::VecDeque;
use std::time::Duration;

use super::replay_buffer::{Exhausted, ReplayBuffer, WrongAck};
use jsonrpc::Frame;

/// An acknowledgement is due after so many messages, so many bytes, or so long, whichever is first.
const ACK_FRAMES: u32 = 32;
const ACK_BYTES: usize = 64 << 10;
const ACK_DELAY: Duration = Duration::from_millis(50);

/// Most bytes in flight unacknowledged, in each direction, by the weights of messages; one message
/// may be longer.
pub const WINDOW: u64 = 4 << 20;

/// One end of a link.
#[derive(Debug)]
pub struct LinkState {
    /// The number of the current attachment; 0 before the first.
    generation: u64,
    is_attached: bool,
    sent: ReplayBuffer,
    /// The bytes that the peer allows to be in flight.
    window: u64,
    /// The number that is received next.
    expected: u64,
    /// What was received on the current attachment and not handled.
    received: VecDeque<Frame>,
    received_bytes: usize,
    unacknowledged: Unacknowledged,
}

/// What was handled since the last acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Unacknowledged {
    frames: u32,
    bytes: usize,
    /// When the first of them was handled.
    since: Option<Duration>,
}

/// What becomes of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is the next one, and can be taken.
    Next,
    /// It was received before, and is dropped.
    Duplicate,
    /// It is from an attachment that was replaced, and is dropped.
    Stale,
    /// One before it is missing: the attachment has to end.
    Gap,
    /// The peer sends more than [`WINDOW`] allows: the link has to end.
    Flood,
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

impl Default for LinkState {
    fn default() -> Self {
        Self::with_numbers(1)
    }
}

impl LinkState {
    /// A link whose messages in both directions begin at number `first`.
    #[must_use]
    pub fn with_numbers(first: u64) -> Self {
        Self {
            generation: 0,
            is_attached: false,
            sent: ReplayBuffer::beginning_at(first),
            window: 0,
            expected: first,
            received: VecDeque::new(),
            received_bytes: 0,
            unacknowledged: Unacknowledged::default(),
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
        self.detach();
        self.sent.rewind();
        self.generation = generation;
        self.is_attached = true;
        self.window = window.min(WINDOW);
        // The greeting has acknowledged everything.
        self.unacknowledged = Unacknowledged::default();
        Ok(())
    }

    /// The current attachment is lost. What came over it and was not handled comes again over the
    /// next one, so that a peer cannot fill the memory by attaching again and again.
    pub fn detach(&mut self) {
        self.is_attached = false;
        self.expected = self.handled() + 1;
        self.received.clear();
        self.received_bytes = 0;
    }

    /// Whether another message may be sent: the peer's window has room for it, or without an
    /// attachment fewer than `limit` bytes wait.
    #[must_use]
    pub const fn has_room(&self, limit: usize) -> bool {
        let bytes = self.sent.bytes();
        match self.is_attached {
            true => (bytes as u64) < self.window,
            false => bytes < limit,
        }
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

    /// Gives back memory that a burst has needed, on an idle link.
    pub fn shrink(&mut self) {
        self.sent.shrink();
        self.received.shrink_to(0);
    }

    /// Whether messages wait to be written on the current attachment or on the next one.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        self.sent.has_unwritten()
    }

    /// Receives message number `seq` on the attachment of `generation`.
    pub fn receive(&mut self, generation: u64, seq: u64, frame: Frame) -> Received {
        #[cfg(any(link_fault = "unchecked", link_fault = "implicit"))]
        let (generation, seq) = self.unchecked(generation, seq);
        if generation != self.generation || !self.is_attached {
            return Received::Stale;
        }
        if seq < self.expected {
            return Received::Duplicate;
        }
        if seq > self.expected {
            return Received::Gap;
        }
        if self.received_bytes as u64 > WINDOW {
            return Received::Flood;
        }
        self.expected += 1;
        self.received_bytes += frame.weight();
        self.received.push_back(frame);
        Received::Next
    }

    /// The broken receivers that a fault run has to notice: one that takes any number, and one that
    /// counts by itself.
    #[cfg(any(link_fault = "unchecked", link_fault = "implicit"))]
    fn unchecked(&mut self, _: u64, seq: u64) -> (u64, u64) {
        if cfg!(link_fault = "unchecked") {
            self.expected = seq;
        }
        (self.generation, self.expected)
    }

    /// The next message that was received. With that it is handled, and will be acknowledged; `now`
    /// is only called for the first one since the last acknowledgement.
    pub fn take(&mut self, now: impl FnOnce() -> Duration) -> Option<Frame> {
        let frame = self.received.pop_front()?;
        self.received_bytes -= frame.weight();
        let unacknowledged = &mut self.unacknowledged;
        unacknowledged.frames += 1;
        unacknowledged.bytes += frame.len();
        unacknowledged.since.get_or_insert_with(now);
        Some(frame)
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
            self.window = window.map_or(self.window, |window| window.min(WINDOW));
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
        self.handled()
    }

    /// The number of the last message that was handled.
    fn handled(&self) -> u64 {
        (self.expected - 1).saturating_sub(self.received.len() as u64)
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
}
