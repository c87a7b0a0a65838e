//! One stream: a queue of messages that wait for a client, and the last ones it was sent.
//!
//! A message gets its number when it is sent, so that the numbers of a stream have no gaps even
//! where another stream took over its messages. The bounds are shared by all streams (see
//! `streams`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use tokio::time::Instant;

use crate::jsonrpc::Frame;

/// What a message costs besides its text, in bytes.
const OVERHEAD: usize = 64;

/// One stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// `None` for the connection's own.
    pub(super) session: Option<Arc<str>>,
    /// Whether the client or the agent has named the session.
    pub(super) known: bool,
    /// The last messages that were sent, kept to be sent again.
    pub(super) sent: VecDeque<StoredFrame>,
    pub(super) waiting: VecDeque<StoredFrame>,
    /// The number of the next message to be sent.
    pub(super) next_number: u64,
    pub(super) receiver: Option<Receiver>,
    /// Whether a client has ever opened it.
    pub(super) opened: bool,
    /// Since when messages have waited without a receiver.
    pub(super) unread_since: Option<Instant>,
    /// Whether the connection's stream carries its messages until it is opened.
    pub(super) redirected: bool,
    /// Whether it does until the client's request to enter the session is answered.
    pub(super) entering: bool,
}

/// One message of a stream.
#[derive(Debug)]
pub(super) struct StoredFrame {
    pub(super) frame: Frame,
    /// Its position in the order of all streams.
    pub(super) order: u64,
}

/// The client's request that has a stream open.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The number of its lease.
    pub(super) lease: u64,
    pub(super) waker: Option<Waker>,
    /// When it last took a message or had none to take.
    pub(super) last_taken: Instant,
}

impl Stream {
    /// The empty stream of a session, or of the connection.
    pub(super) fn new(session: Option<Arc<str>>) -> Self {
        Self {
            known: session.is_none(),
            session,
            next_number: 1,
            ..Self::default()
        }
    }

    /// Queues all messages sent after message `last` again, and returns their size in bytes.
    /// `None`, and no change, when some of them are not kept any more, or `last` was never sent.
    pub(super) fn rewind(&mut self, last: u64) -> Option<usize> {
        let oldest = self.next_number - self.sent.len() as u64;
        if last >= self.next_number || last + 1 < oldest {
            return None;
        }
        let mut bytes = 0;
        while self.next_number > last + 1 {
            let event = self.sent.pop_back();
            let event = event.expect("as many are kept as were counted");
            bytes += event.size();
            self.waiting.push_front(event);
            self.next_number -= 1;
        }
        Some(bytes)
    }

    /// Drops the oldest sent message, and returns its size.
    pub(super) fn forget(&mut self) -> usize {
        self.sent.pop_front().map_or(0, |event| event.size())
    }

    /// Bytes of the sent messages that are kept.
    pub(super) fn sent_bytes(&self) -> usize {
        self.sent.iter().map(StoredFrame::size).sum()
    }

    /// Bytes of the messages that wait.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(StoredFrame::size).sum()
    }

    /// Records since when messages wait without a receiver.
    pub(super) fn update_unread(&mut self, now: Instant) {
        if self.receiver.is_none() && !self.waiting.is_empty() {
            self.unread_since.get_or_insert(now);
        }
    }

    /// Whether the holder of this lease has it open.
    pub(super) fn is_held_by(&self, lease: u64) -> bool {
        self.receiver
            .as_ref()
            .is_some_and(|receiver| receiver.lease == lease)
    }

    /// Wakes the receiver, which is about to change or has something to take.
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.receiver.as_mut().and_then(|one| one.waker.take()) {
            waker.wake();
        }
    }
}

impl StoredFrame {
    /// What it counts for in all bounds, in bytes.
    pub(super) fn size(&self) -> usize {
        self.frame.len() + OVERHEAD
    }
}
