//! A link of which frames are sent and received at once, by a program that is one side of a
//! conversation itself.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use super::{CloseReason, FrameSink, FrameStream, SinkPoll};
use jsonrpc::Frame;
use jsonrpc::framing::Decoded;

/// The two halves of a link, and the frames to send.
pub struct QueuedLink {
    rx: Box<dyn FrameStream>,
    tx: Box<dyn FrameSink>,
    /// Frames to send.
    pub queue: VecDeque<Frame>,
    /// The stream to the peer was closed.
    closed: bool,
}

jsonrpc::opaque_debug!(QueuedLink);

impl QueuedLink {
    /// Sends and receives on these halves of a link.
    pub fn new(rx: Box<dyn FrameStream>, tx: Box<dyn FrameSink>) -> Self {
        Self {
            rx,
            tx,
            queue: VecDeque::new(),
            closed: false,
        }
    }

    /// The next frame; meanwhile the queue is sent, and the stream to the peer then closed for the
    /// reason `closes`. `None` when the peer has ended its stream or is lost. Without `reads`, only
    /// whether it is lost.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        closes: Option<CloseReason>,
        reads: bool,
    ) -> Poll<Option<Frame>> {
        if let Poll::Ready(Err(error)) = self.poll_write(cx, closes) {
            tracing::warn!("the connection to the agent is lost: {error}");
            return Poll::Ready(None);
        }
        if !reads {
            return Poll::Pending;
        }
        loop {
            match ready!(self.rx.poll_next(cx)) {
                Some(Ok(Decoded::Frame(frame))) => return Poll::Ready(Some(frame)),
                Some(Ok(Decoded::Error(error))) => tracing::warn!("the agent: {error}"),
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, closes: Option<CloseReason>) -> SinkPoll {
        while !self.queue.is_empty() {
            ready!(self.tx.poll_ready(cx))?;
            if let Some(frame) = self.queue.pop_front() {
                self.tx.start_send(frame)?;
            }
        }
        ready!(self.tx.poll_flush(cx))?;
        if let Some(reason) = closes.filter(|_| !self.closed) {
            ready!(self.tx.poll_close(cx, reason))?;
            self.closed = true;
        }
        Poll::Ready(Ok(()))
    }
}
