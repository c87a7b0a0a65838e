//! Writes frames to a byte stream.
//!
//! At most [`HIGH_WATER`] bytes wait here beyond the last frame given. Small frames are gathered in
//! one buffer so that a batch is one write; large ones are queued without a copy.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write as _};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::read::Opening;
use crate::{CloseReason, FrameSink, LinkError, SinkPoll};
use jsonrpc::Frame;
use jsonrpc::framing::Framing;

/// Bytes that may wait before a sink writes, and above which it is not ready.
const HIGH_WATER: usize = 64 << 10;
/// Messages of this size and more are not copied.
const NO_COPY: usize = 16 << 10;
/// The buffer an idle link keeps, in bytes.
const SMALL: usize = 8 << 10;
/// Pieces given to one vectored write.
const SLICES: usize = 16;

/// The sending half of a link over a byte stream.
#[derive(Debug)]
pub struct Writer<W> {
    /// `None` once it is closed: a pipe ends only when its descriptor is closed.
    io: Option<W>,
    opening: Arc<Opening>,
    has_sent: bool,
    queue: WriteQueue,
}

/// Bytes that wait to be written.
#[derive(Debug, Default)]
struct WriteQueue {
    /// Written first.
    pieces: VecDeque<Bytes>,
    /// Bytes in `pieces` that are not written.
    piece_bytes: usize,
    /// Written after all pieces; small messages are appended here.
    tail: BytesMut,
    /// A slowly decaying maximum of the bytes written between two flushes.
    recent: usize,
    since_flush: usize,
}

impl<W> Writer<W> {
    pub(super) fn new(io: W, opening: Arc<Opening>) -> Self {
        Self {
            io: Some(io),
            opening,
            has_sent: false,
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
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        self.poll_write_until(cx, HIGH_WATER).map_err(failed)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if !mem::replace(&mut self.has_sent, true) {
            self.opening.sent.notify_one();
        }
        let framing = self.opening.framing.get().copied();
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

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        ready!(self.poll_write_until(cx, 0)).map_err(failed)?;
        self.queue.shrink();
        match &mut self.io {
            Some(io) => Pin::new(io).poll_flush(cx).map_err(failed),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _why: CloseReason) -> SinkPoll {
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

impl WriteQueue {
    /// Bytes that wait.
    fn waiting(&self) -> usize {
        self.piece_bytes + self.tail.len()
    }

    /// Queues `piece` behind everything else, without a copy.
    fn push(&mut self, piece: Bytes) {
        let before = self.tail.split().freeze();
        for piece in [before, piece] {
            if !piece.is_empty() {
                self.piece_bytes += piece.len();
                self.pieces.push_back(piece);
            }
        }
    }

    /// Writes queued bytes with one call.
    fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        io: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let io = Pin::new(io);
        let written = match self.pieces.front() {
            None => ready!(io.poll_write(cx, &self.tail))?,
            Some(first) if !io.is_write_vectored() => ready!(io.poll_write(cx, first))?,
            Some(_) => {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let mut used = 0;
                let parts = self.pieces.iter().map(|piece| &piece[..]);
                for (slot, part) in slices.iter_mut().zip(parts.chain([&self.tail[..]])) {
                    *slot = IoSlice::new(part);
                    used += 1;
                }
                ready!(io.poll_write_vectored(cx, &slices[..used]))?
            }
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(()))
    }

    /// Releases memory left over from a burst or a large message. Called when the queue is empty.
    fn shrink(&mut self) {
        // A batch that follows batches of about its size finds its buffer, so that it needs no
        // allocation; after some thirty small ones the memory is released.
        let written = mem::take(&mut self.since_flush).min(HIGH_WATER);
        self.recent = written.max(self.recent - self.recent / 8);
        if self.tail.capacity() > (4 * self.recent).max(SMALL) {
            self.tail = BytesMut::new();
        }
        if self.pieces.capacity() > 2 * SLICES {
            self.pieces = VecDeque::new();
        }
    }

    /// Removes written bytes from the queue.
    fn advance(&mut self, mut count: usize) {
        self.since_flush += count;
        while count > 0 {
            let Some(first) = self.pieces.front_mut() else {
                self.tail.advance(count);
                return;
            };
            let part = count.min(first.len());
            first.advance(part);
            self.piece_bytes -= part;
            count -= part;
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `frame` and returns the size of the buffer that is kept.
    fn retained(writer: &mut Writer<tokio::io::Sink>, frame: &Frame) -> usize {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(writer.poll_ready(&mut cx).is_ready());
        writer.start_send(frame.clone()).expect("a sink takes all");
        assert!(writer.poll_flush(&mut cx).is_ready());
        writer.queue.tail.capacity()
    }

    #[test]
    fn buffer_shrinks_after_a_burst() {
        let mut writer = Writer::new(tokio::io::sink(), Arc::default());
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
