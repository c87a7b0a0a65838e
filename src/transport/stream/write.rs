//! Frames into a stream of bytes.
//!
//! Small frames are gathered into one buffer so that a batch is one write; large ones are passed
//! on as they are, without a copy. At most [`BOUND`] bytes wait here beyond the last frame given.
//! Not here: which frame comes next (see `relay`).

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::Spoken;
use crate::transport::{Farewell, FrameSink, LinkError};
use crate::wire::Frame;
use crate::wire::framing::Framing;

/// Bytes that may wait before `poll_ready` writes, and above which it is not ready.
const BOUND: usize = 64 << 10;
/// Frames of this size and more are not copied.
const LARGE: usize = 16 << 10;
/// The buffer a quiet link keeps.
const SMALL: usize = 8 << 10;
/// Pieces given to one vectored write.
const SLICES: usize = 16;

/// The sending half of a link over a byte stream.
#[derive(Debug)]
pub struct Writer<W> {
    /// `None` once it is closed: a pipe ends only when its descriptor is gone.
    io: Option<W>,
    spoken: Spoken,
    /// What goes out first.
    pieces: VecDeque<Bytes>,
    /// Bytes in `pieces`.
    in_pieces: usize,
    /// What goes out after all pieces; small frames are laid here.
    tail: BytesMut,
    /// The most that has lately gone out between two flushes, slowly forgotten.
    recent: usize,
    since_flush: usize,
}

impl<W> Writer<W> {
    pub(super) fn new(io: W, spoken: Spoken) -> Self {
        Self {
            io: Some(io),
            spoken,
            pieces: VecDeque::new(),
            in_pieces: 0,
            tail: BytesMut::new(),
            recent: 0,
            since_flush: 0,
        }
    }

    /// Bytes that wait.
    fn waiting(&self) -> usize {
        self.in_pieces + self.tail.len()
    }

    fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.in_pieces += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Puts a large frame behind what waits, without a copy.
    fn push_whole(&mut self, framing: Framing, frame: Frame) {
        if framing == Framing::ContentLength {
            let mut head = (&mut self.tail).writer();
            write!(head, "Content-Length: {}\r\n\r\n", frame.len())
                .expect("a growing buffer takes everything");
        }
        let before = self.tail.split().freeze();
        self.push(before);
        self.push(frame.into_bytes());
        if framing == Framing::Ndjson {
            self.tail.put_u8(b'\n');
        }
    }

    /// Strikes off what was written.
    fn written(&mut self, mut count: usize) {
        self.since_flush += count;
        while count > 0 {
            let Some(first) = self.pieces.front_mut() else {
                self.tail.advance(count);
                return;
            };
            let struck = count.min(first.len());
            first.advance(struck);
            self.in_pieces -= struck;
            count -= struck;
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
    }

    /// Gives memory back that a passing burst or a large frame has left behind.
    fn shrink(&mut self) {
        // A batch that follows batches of about its size finds its buffer; after some thirty small
        // ones the memory goes. A buffer beyond what batches need goes at once.
        self.recent = self
            .since_flush
            .min(BOUND)
            .max(self.recent - self.recent / 8);
        self.since_flush = 0;
        let kept = (4 * self.recent).max(SMALL);
        if self.tail.capacity() > kept {
            self.tail = BytesMut::new();
        }
        if self.pieces.capacity() > 2 * SLICES {
            self.pieces = VecDeque::new();
        }
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes once what waits.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(io) = self.io.as_mut().map(Pin::new) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
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
        self.written(written);
        Poll::Ready(Ok(()))
    }

    /// Writes until no more than `left` bytes wait.
    fn poll_write_down(&mut self, cx: &mut Context<'_>, left: usize) -> Poll<io::Result<()>> {
        while self.waiting() > left {
            ready!(self.poll_write(cx))?;
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
        // A line must not hold another one: some peers end a line at a bare CR, too.
        let whole = frame.len() >= LARGE
            && (framing == Framing::ContentLength
                || memchr::memchr2(b'\n', b'\r', frame.as_bytes()).is_none());
        if whole {
            self.push_whole(framing, frame);
        } else {
            framing.lay(&frame, &mut self.tail);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_write_down(cx, 0)).map_err(failed)?;
        self.shrink();
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
            self.tail = BytesMut::new();
            return Poll::Ready(shut);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `frame` and returns the memory that is kept.
    fn kept(writer: &mut Writer<tokio::io::Sink>, frame: &Frame) -> usize {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(writer.poll_ready(&mut cx).is_ready());
        writer.start_send(frame.clone()).expect("a sink takes all");
        assert!(writer.poll_flush(&mut cx).is_ready());
        writer.tail.capacity()
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
