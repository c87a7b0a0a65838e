//! Bytes that wait to be written.
//!
//! What is small is gathered in one buffer so that a batch is one write; what is large is passed
//! on as it is, without a copy. Not here: what the bytes are, and how many may wait.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

/// Bytes that may wait before a sink writes, and above which it is not ready.
pub(in crate::transport) const BOUND: usize = 64 << 10;
/// Messages of this size and more are not copied.
pub(in crate::transport) const LARGE: usize = 16 << 10;
/// The buffer a quiet link keeps.
pub(in crate::transport) const SMALL: usize = 8 << 10;
/// Pieces given to one vectored write.
const SLICES: usize = 16;

/// What waits to be written.
#[derive(Debug, Default)]
pub(in crate::transport) struct Pile {
    /// What goes out first.
    pieces: VecDeque<Bytes>,
    /// Bytes in `pieces`. Those of the first piece count until all of it is written, because its
    /// memory is held until then.
    in_pieces: usize,
    /// Bytes of the first piece that are written.
    struck: usize,
    /// What goes out after all pieces; small things are laid here.
    pub(in crate::transport) tail: BytesMut,
    /// The most that has lately gone out between two flushes, slowly forgotten.
    recent: usize,
    since_flush: usize,
}

impl Pile {
    /// Bytes that wait, or lie in memory with others that do.
    pub(in crate::transport) fn waiting(&self) -> usize {
        self.in_pieces + self.tail.len()
    }

    /// Puts `piece` behind all that waits, without a copy.
    pub(in crate::transport) fn push(&mut self, piece: Bytes) {
        let before = self.tail.split().freeze();
        for piece in [before, piece] {
            if !piece.is_empty() {
                self.in_pieces += piece.len();
                self.pieces.push_back(piece);
            }
        }
    }

    /// Writes once what waits.
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
        self.written(written);
        Poll::Ready(Ok(()))
    }

    /// Gives memory back that a passing burst or a large message has left behind. Called when all
    /// is written.
    pub(in crate::transport) fn shrink(&mut self) {
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
            self.struck += struck;
            count -= struck;
            if first.is_empty() {
                self.pieces.pop_front();
                self.in_pieces -= std::mem::take(&mut self.struck);
            }
        }
    }
}
