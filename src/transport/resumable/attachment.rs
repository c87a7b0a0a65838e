//! The connection that carries a link now: its messages, its signs of life, and what the link itself
//! writes on it.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::wire::encode;
use crate::liveness::Liveness;
use crate::{Link, LinkError, StopStep, closing};
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Frame};
use link::{End, Header};

/// Most messages of the link itself that wait.
const MAX_CONTROL: usize = 64;

/// A connection that carries a link.
pub(super) struct Attachment {
    link: Link,
    pub(super) liveness: Liveness,
    /// Messages of the link itself, which are written first.
    control: VecDeque<Frame>,
    is_unflushed: bool,
    /// The peer has sent a message over it.
    pub(super) is_good: bool,
}

/// Why an attachment has ended.
pub(super) enum Fault {
    /// It is lost; the next one continues.
    Lost(String),
    /// The peer or its messages are not as they have to be: the link ends.
    Broken(LinkError),
}

impl Attachment {
    /// An attachment on which `first` is written first, and whose peer may be silent for `interval`.
    pub(super) fn new(link: Link, first: Frame, interval: Duration) -> Self {
        Self {
            link,
            liveness: Liveness::new(interval),
            control: [first].into(),
            is_unflushed: false,
            is_good: false,
        }
    }

    /// The address of the peer.
    pub(super) fn name(&self) -> &str {
        &self.link.peer.name
    }

    /// The next message of the link.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, Fault>> {
        let received = self.link.rx.poll_next(cx);
        if received.is_pending() {
            // A long message may take longer than the peer may be silent.
            self.liveness.received |= self.link.rx.has_progressed();
        }
        received.map(|received| match received {
            Some(Ok(Decoded::Frame(frame))) => {
                self.liveness.received = true;
                self.is_good = true;
                Ok(frame)
            }
            Some(Ok(Decoded::Error(error))) => Err(Fault::Broken(LinkError::Framing(error))),
            Some(Err(error)) => Err(error.into()),
            None => Err(Fault::Lost("the connection has ended".to_owned())),
        })
    }

    /// Queues a message of the link itself; none for a peer that asks for answers and reads none.
    pub(super) fn control(&mut self, header: &Header) {
        if self.control.len() < MAX_CONTROL {
            self.control.push_back(encode(header));
        }
    }

    /// The next queued message of the link itself.
    pub(super) fn next_control(&mut self) -> Option<Frame> {
        self.control.pop_front()
    }

    /// Ready when another message can be written.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.link.tx.poll_ready(cx).map_err(Fault::from)
    }

    pub(super) fn start_send(&mut self, frame: Frame) -> Result<(), Fault> {
        self.is_unflushed = true;
        Ok(self.link.tx.start_send(frame)?)
    }

    /// Flushes as far as the peer takes it at once.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        if self.is_unflushed
            && let Poll::Ready(flushed) = self.link.tx.poll_flush(cx)
        {
            flushed?;
            self.is_unflushed = false;
        }
        Ok(())
    }

    /// Whether the peer has not taken all that was written.
    pub(super) const fn is_unflushed(&self) -> bool {
        self.is_unflushed
    }

    /// Whether everything of the link itself was written.
    pub(super) fn is_greeted(&self) -> bool {
        self.control.is_empty() && !self.is_unflushed
    }

    /// Tells the peer that the link ends because of this, if it reads.
    pub(super) fn end(mut self, error: &LinkError) {
        let (code, _) = closing::code(CloseReason::Violation);
        let reason = error.to_string();
        let mut cx = Context::from_waker(Waker::noop());
        if matches!(self.poll_ready(&mut cx), Poll::Ready(Ok(()))) {
            // It is dropped next.
            let _ = self.start_send(encode(&Header::End(Box::new(End { code, reason }))));
            let _ = self.flush(&mut cx);
        }
    }

    /// Closes the connection.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> Poll<()> {
        self.link.tx.poll_close(cx, why).map(drop)
    }

    /// Signals the processes of the connection.
    pub(super) fn signal(&mut self, step: StopStep) {
        self.link.guard.signal(step);
    }

    /// Has the processes of the connection pass on their stderr.
    pub(super) fn capture(&mut self, stderr: Option<Stderr>) {
        if let Some(stderr) = stderr {
            let callback = Box::new(move |bytes: &[u8]| stderr(bytes));
            self.link.guard.capture_stderr(callback);
        }
    }
}

/// Receives what the processes of attachments write to stderr.
pub(super) type Stderr = std::sync::Arc<dyn Fn(&[u8]) + Send + Sync>;

impl From<LinkError> for Fault {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Io { .. } => Self::Lost(error.to_string()),
            error => Self::Broken(error),
        }
    }
}
