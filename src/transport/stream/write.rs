//! Writes frames to a byte stream.
//!
//! At most [`HIGH_WATER`] bytes wait here beyond the last frame given.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use tokio::io::AsyncWrite;

use super::write_queue::{HIGH_WATER, NO_COPY};
use super::{PeerFraming, WriteQueue};
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Framing;
use crate::transport::{CloseReason, FrameSink, LinkError};

/// The sending half of a link over a byte stream.
#[derive(Debug)]
pub struct Writer<W> {
    /// `None` once it is closed: a pipe ends only when its descriptor is closed.
    io: Option<W>,
    peer_framing: PeerFraming,
    queue: WriteQueue,
}

impl<W> Writer<W> {
    pub(super) fn new(io: W, peer_framing: PeerFraming) -> Self {
        Self {
            io: Some(io),
            peer_framing,
            queue: WriteQueue::default(),
        }
    }

    /// Queues a large frame without a copy.
    fn push_whole(&mut self, framing: Framing, frame: Frame) {
        if framing == Framing::ContentLength {
            let mut head = (&mut self.queue.tail).writer();
            write!(head, "Content-Length: {}\r\n\r\n", frame.len())
                .expect("a growing buffer takes everything");
        }
        self.queue.push(frame.into_bytes());
        if framing == Framing::Ndjson {
            self.queue.tail.put_u8(b'\n');
        }
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes until no more than `max_waiting` bytes wait.
    fn poll_write_until(
        &mut self,
        cx: &mut Context<'_>,
        max_waiting: usize,
    ) -> Poll<io::Result<()>> {
        while self.queue.waiting() > max_waiting {
            let Some(io) = &mut self.io else {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            };
            ready!(self.queue.poll_write(io, cx))?;
        }
        Poll::Ready(Ok(()))
    }
}

fn failed(source: io::Error) -> LinkError {
    let context = "writing to the peer";
    LinkError::Io { context, source }
}

impl<W: AsyncWrite + Send + Unpin> FrameSink for Writer<W> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.poll_write_until(cx, HIGH_WATER).map_err(failed)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let framing = self.peer_framing.get().copied();
        let framing = framing.unwrap_or(Framing::Ndjson);
        // A line must not hold another one: some peers also end a line at a bare CR.
        let whole = frame.len() >= NO_COPY
            && (framing == Framing::ContentLength
                || memchr::memchr2(b'\n', b'\r', frame.as_bytes()).is_none());
        if whole {
            self.push_whole(framing, frame);
        } else {
            framing.encode(&frame, &mut self.queue.tail);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_write_until(cx, 0)).map_err(failed)?;
        self.queue.shrink();
        match &mut self.io {
            Some(io) => Pin::new(io).poll_flush(cx).map_err(failed),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_flush(cx))?;
        if let Some(io) = &mut self.io {
            let shut = ready!(Pin::new(io).poll_shutdown(cx)).map_err(failed);
            self.io = None;
            self.queue.tail = BytesMut::new();
            return Poll::Ready(shut);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::stream::write_queue::SMALL;

    /// Sends `frame` and returns the size of the buffer that is kept.
    fn retained(writer: &mut Writer<tokio::io::Sink>, frame: &Frame) -> usize {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(writer.poll_ready(&mut cx).is_ready());
        writer.start_send(frame.clone()).expect("a sink takes all");
        assert!(writer.poll_flush(&mut cx).is_ready());
        writer.queue.tail.capacity()
    }

    /// A writer that accepts this many bytes, and then none.
    struct Limited(usize);

    impl AsyncWrite for Limited {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 {
                return Poll::Pending;
            }
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn large_frame_is_pending_until_fully_written() {
        let large = Frame::from("x".repeat(1 << 20));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for (takes, ready) in [(1 << 20, false), ((1 << 20) + 1, true)] {
            let mut writer = Writer::new(Limited(takes - 1), PeerFraming::default());
            writer.start_send(large.clone()).expect("a queue takes all");
            let is_ready = writer.poll_ready(&mut cx).is_ready();
            assert_eq!(is_ready, ready, "{takes}");
        }
    }

    #[test]
    fn buffer_shrinks_after_a_burst() {
        let mut writer = Writer::new(tokio::io::sink(), PeerFraming::default());
        let small = Frame::from("{}");
        // With a line break it has to be copied, and is not kept.
        let large = Frame::from("x\n".repeat(1 << 20));
        assert!(retained(&mut writer, &large) <= 2 * HIGH_WATER);
        for _ in 0..100 {
            retained(&mut writer, &small);
        }
        assert!(retained(&mut writer, &small) <= SMALL);
    }
}
