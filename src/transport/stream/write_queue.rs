//! A queue of bytes to be written.
//!
//! Small pieces are gathered in one buffer so that a batch is one write; large ones are queued
//! without a copy.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

/// Bytes that may wait before a sink writes, and above which it is not ready.
pub(in crate::transport) const HIGH_WATER: usize = 64 << 10;
/// Messages of this size and more are not copied.
pub(in crate::transport) const NO_COPY: usize = 16 << 10;
/// The buffer an idle link keeps, in bytes.
pub(in crate::transport) const SMALL: usize = 8 << 10;
/// Pieces given to one vectored write.
const SLICES: usize = 16;

/// Bytes that wait to be written.
#[derive(Debug, Default)]
pub(in crate::transport) struct WriteQueue {
    /// Written first.
    pieces: VecDeque<Bytes>,
    /// Bytes in `pieces`. Those of the first piece count until all of it is written, because its
    /// memory is held until then.
    piece_bytes: usize,
    /// Bytes of the first piece that are written.
    front_written: usize,
    /// Written after all pieces; small messages are appended here.
    pub(in crate::transport) tail: BytesMut,
    /// A slowly decaying maximum of the bytes written between two flushes.
    recent: usize,
    since_flush: usize,
}

impl WriteQueue {
    /// Bytes that wait, or share memory with bytes that wait.
    pub(in crate::transport) fn waiting(&self) -> usize {
        self.piece_bytes + self.tail.len()
    }

    /// Queues `piece` behind everything else, without a copy.
    pub(in crate::transport) fn push(&mut self, piece: Bytes) {
        let before = self.tail.split().freeze();
        for piece in [before, piece] {
            if !piece.is_empty() {
                self.piece_bytes += piece.len();
                self.pieces.push_back(piece);
            }
        }
    }

    /// Writes queued bytes with one call.
    pub(in crate::transport) fn poll_write<W: AsyncWrite + Unpin>(
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
    pub(in crate::transport) fn shrink(&mut self) {
        // A batch that follows batches of about its size finds its buffer; after some thirty small
        // ones the memory is released. A buffer beyond what batches need is released at once.
        self.recent = self
            .since_flush
            .min(HIGH_WATER)
            .max(self.recent - self.recent / 8);
        self.since_flush = 0;
        let capacity = (4 * self.recent).max(SMALL);
        if self.tail.capacity() > capacity {
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
            self.front_written += part;
            count -= part;
            if first.is_empty() {
                self.pieces.pop_front();
                self.piece_bytes -= std::mem::take(&mut self.front_written);
            }
        }
    }
}
