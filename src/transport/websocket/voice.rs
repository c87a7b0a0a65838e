//! The sending side of the socket, and what is said besides messages: pongs and the close frame.
//!
//! The ear answers pings and closes, the mouth sends messages, and a socket takes one frame after
//! the other. So both share this behind a lock, which the mouth takes once for a batch of messages
//! and the ear only when it owes an answer. While the mouth has part of a batch out, it is the one
//! who waits for the socket, and the ear leaves its answer for it. Not here: messages.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::frame::{Header, LONGEST_CONTROL, Opcode, Role};
use super::masks::Masks;

/// Answers that may wait to be written, in bytes; of what does not fit only the latest pong is
/// kept, as RFC 6455, 5.5.3 allows.
const BOUND: usize = 2 << 10;

/// The sending side of a connection.
#[derive(Debug)]
pub(super) struct Voice<W> {
    pub(super) io: W,
    /// Whether the mouth has something out, or waits for the socket to take it.
    pub(super) engaged: bool,
    role: Role,
    masks: Masks,
    /// Whole control frames; the first may be partly written.
    waiting: BytesMut,
    /// The latest ping that could not be answered yet.
    pong: Option<Bytes>,
    /// Whether something was written that was not flushed.
    unflushed: bool,
    /// Whether our close frame was laid: nothing may follow it.
    closed: bool,
}

impl<W> Voice<W> {
    pub(super) fn new(io: W, role: Role) -> Self {
        Self {
            io,
            engaged: false,
            role,
            masks: Masks::new(),
            waiting: BytesMut::new(),
            pong: None,
            unflushed: false,
            closed: false,
        }
    }

    /// Whether our close frame is said, or waits to be.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether our close frame has left.
    pub(super) fn is_said(&self) -> bool {
        self.closed && self.waiting.is_empty()
    }

    /// Whether the socket does not take all that is to be sent.
    pub(super) fn is_full(&self) -> bool {
        self.engaged || !self.waiting.is_empty()
    }

    /// Answers a ping, soon.
    pub(super) fn pong(&mut self, payload: &[u8]) {
        if self.waiting.len() + LONGEST_CONTROL > BOUND {
            // A copy, so that it does not hold the buffer it was read to.
            self.pong = Some(Bytes::copy_from_slice(payload));
        } else {
            self.lay(Opcode::Pong, payload);
        }
    }

    /// Asks the peer for a sign of life.
    pub(super) fn ping(&mut self) {
        self.lay(Opcode::Ping, &[]);
    }

    /// Says that we close. Only the first close frame counts.
    pub(super) fn close(&mut self, payload: &[u8]) {
        self.lay(Opcode::Close, payload);
        self.pong = None;
        self.closed = true;
    }

    fn lay(&mut self, opcode: Opcode, payload: &[u8]) {
        if self.closed {
            return;
        }
        let mut mask = match self.role {
            Role::Server => None,
            Role::Client => match self.masks.next() {
                Ok(mask) => Some(mask),
                Err(fault) => {
                    tracing::warn!(%fault, "a control frame was not sent");
                    return;
                }
            },
        };
        let length = payload.len() as u64;
        let last = true;
        let header = Header {
            last,
            opcode,
            mask,
            length,
        };
        header.encode(&mut self.waiting);
        let from = self.waiting.len();
        self.waiting.extend_from_slice(payload);
        if let Some(mask) = &mut mask {
            mask.apply(&mut self.waiting[from..]);
        }
    }
}

impl<W: AsyncWrite + Unpin> Voice<W> {
    /// Writes what waits here; to be called between two frames only.
    pub(super) fn poll_answers(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while !self.waiting.is_empty() {
                let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.waiting))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.waiting.advance(written);
                self.unflushed = true;
            }
            match self.pong.take() {
                Some(payload) => self.lay(Opcode::Pong, &payload),
                None => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Sends what waits here on the ear's behalf; pending when it has to try again.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.engaged {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_answers(cx))?;
        if self.unflushed {
            ready!(self.poll_flush(cx))?;
        }
        self.waiting = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_pings_is_owed_a_bounded_answer() {
        let mut voice = Voice::new(tokio::io::sink(), Role::Client);
        for number in 0_u32..100_000 {
            voice.pong(format!("{number:0125}").as_bytes());
        }
        assert!(voice.waiting.len() <= BOUND, "{}", voice.waiting.len());
        let latest = Bytes::from(format!("{:0125}", 99_999));
        assert_eq!(voice.pong, Some(latest));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(voice.poll_answer(&mut cx).is_ready());
        assert_eq!((voice.waiting.capacity(), voice.pong), (0, None));
    }
}
