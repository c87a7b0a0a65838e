//! Writes frames to a byte stream.
//!
//! At most [`HIGH_WATER`] bytes wait here beyond the last frame given.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use tokio::io::AsyncWrite;

use super::pile::{BOUND, LARGE};
use super::{Pile, Spoken};
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Framing;
use crate::transport::{Farewell, FrameSink, LinkError};

/// The sending half of a link over a byte stream.
#[derive(Debug)]
pub struct Writer<W> {
    /// `None` once it is closed: a pipe ends only when its descriptor is closed.
    io: Option<W>,
    spoken: Spoken,
    pile: Pile,
}

impl<W> Writer<W> {
    pub(super) fn new(io: W, spoken: Spoken) -> Self {
        Self {
            io: Some(io),
            spoken,
            pile: Pile::default(),
        }
    }

    /// Queues a large frame without a copy.
    fn push_whole(&mut self, framing: Framing, frame: Frame) {
        if framing == Framing::ContentLength {
            let mut head = (&mut self.pile.tail).writer();
            write!(head, "Content-Length: {}\r\n\r\n", frame.len())
                .expect("a growing buffer takes everything");
        }
        self.pile.push(frame.into_bytes());
        if framing == Framing::Ndjson {
            self.pile.tail.put_u8(b'\n');
        }
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes until no more than `max_waiting` bytes wait.
    fn poll_write_down(&mut self, cx: &mut Context<'_>, left: usize) -> Poll<io::Result<()>> {
        while self.pile.waiting() > left {
            let Some(io) = &mut self.io else {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            };
            ready!(self.pile.poll_write(io, cx))?;
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
        self.poll_write_down(cx, BOUND).map_err(failed)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let framing = self.spoken.get().unwrap_or(Framing::Ndjson);
        // A line must not hold another one: some peers also end a line at a bare CR.
        let whole = frame.len() >= LARGE
            && (framing == Framing::ContentLength
                || memchr::memchr2(b'\n', b'\r', frame.as_bytes()).is_none());
        if whole {
            self.push_whole(framing, frame);
        } else {
            framing.lay(&frame, &mut self.pile.tail);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_write_down(cx, 0)).map_err(failed)?;
        self.pile.shrink();
        match &mut self.io {
            Some(io) => Pin::new(io).poll_flush(cx).map_err(failed),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _why: Farewell) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_flush(cx))?;
        if let Some(io) = &mut self.io {
            let shut = ready!(Pin::new(io).poll_shutdown(cx)).map_err(failed);
            self.io = None;
            self.pile.tail = BytesMut::new();
            return Poll::Ready(shut);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::stream::pile::SMALL;

    /// Sends `frame` and returns the size of the buffer that is kept.
    fn kept(writer: &mut Writer<tokio::io::Sink>, frame: &Frame) -> usize {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(writer.poll_ready(&mut cx).is_ready());
        writer.start_send(frame.clone()).expect("a sink takes all");
        assert!(writer.poll_flush(&mut cx).is_ready());
        writer.pile.tail.capacity()
    }

    /// A writer that accepts this many bytes, and then none.
    struct Sated(usize);

    impl AsyncWrite for Sated {
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
    fn the_memory_of_a_large_message_is_not_forgotten_for_its_last_bytes() {
        let large = Frame::from("x".repeat(1 << 20));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for (takes, ready) in [(1 << 20, false), ((1 << 20) + 1, true)] {
            let mut writer = Writer::new(Sated(takes - 1), Spoken::new(None));
            writer.start_send(large.clone()).expect("a queue takes all");
            let is_ready = writer.poll_ready(&mut cx).is_ready();
            assert_eq!(is_ready, ready, "{takes}");
        }
    }

    #[test]
    fn memory_goes_when_the_burst_is_over() {
        let mut writer = Writer::new(tokio::io::sink(), Spoken::new(None));
        let small = Frame::from("{}");
        // With a line break it has to be copied, and is not kept.
        let large = Frame::from("x\n".repeat(1 << 20));
        assert!(kept(&mut writer, &large) <= 2 * BOUND);
        for _ in 0..100 {
            kept(&mut writer, &small);
        }
        assert!(kept(&mut writer, &small) <= SMALL);
    }
}
