//! The byte stream under a `WebSocketStream`. It follows the lengths in the heads of incoming
//! frames, reads ahead, and records what was written.
//!
//! It delays and changes nothing. `connection` asks it whether the library above has anything to
//! return, whether it holds part of a message, and whether one of its buffers may have grown.

use std::future::Future as _;
use std::io::{self, Cursor};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::OpCode;

/// The size of the library's read buffer, which it allocates at once and fills with zeros for each
/// read, even one that finds nothing. An idle connection keeps it.
pub(super) const READ_BUFFER: usize = 2 << 10;
/// What is read at once, and the most while a peer sends faster than that is consumed.
const AHEAD: usize = 4 << 10;
const MOST_AHEAD: usize = 64 << 10;

/// A frame's head takes at most so many bytes (RFC 6455, 5.2).
const HEAD: usize = 14;

/// A byte stream, and what has passed over it.
#[derive(Debug)]
pub(super) struct ByteStream<S> {
    pub(super) io: S,
    /// Longest message, in bytes.
    max: u64,
    /// The head of the next frame, as far as it is there.
    head: Vec<u8>,
    /// Bytes of the current frame's payload that are still to come.
    payload: u64,
    /// The length of the fragmented message that is being received.
    message: Option<u64>,
    /// A frame was announced that makes its message longer than `max`; it is not read.
    pub(super) is_too_long: bool,
    /// What was read and not given to the library yet.
    ahead: BytesMut,
    read_size: usize,
    /// The end of the stream, or the fault, that comes after it.
    end: Option<io::Result<()>>,
    /// The library was given so many frames and has not returned them; more when it returned
    /// several as one message.
    pub(super) unreturned: usize,
    /// Bytes received since they were last counted.
    pub(super) received: usize,
    /// Something has passed since this was last cleared.
    pub(super) is_active: bool,
    /// A buffer of the library may be larger than [`READ_BUFFER`].
    pub(super) has_grown: bool,
    /// Something was given to the library or written that was not flushed.
    pub(super) is_unflushed: bool,
    /// The socket did not take all that was written.
    pub(super) is_blocked: bool,
}

impl<S> ByteStream<S> {
    pub(super) fn new(io: S, max: usize) -> Self {
        Self {
            io,
            max: max as u64,
            head: Vec::with_capacity(HEAD),
            payload: 0,
            message: None,
            is_too_long: false,
            ahead: BytesMut::new(),
            read_size: AHEAD,
            end: None,
            unreturned: 0,
            received: 0,
            is_active: false,
            has_grown: false,
            is_unflushed: false,
            is_blocked: false,
        }
    }

    /// The bytes that the library holds when it waits for more and holds no payload: those of a
    /// head that is there in part.
    pub(super) fn part_of_head(&self) -> Option<&[u8]> {
        let holds_payload = self.payload > 0 || self.message.is_some() || !self.ahead.is_empty();
        (!holds_payload).then_some(&self.head)
    }

    /// Follows the frames in `bytes`. Returns how many bytes may be passed on: all, or those up to
    /// the payload of a frame that is too long. So the same is reported however a stream is cut.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() && !self.is_too_long {
            let rest = &bytes[at..];
            if self.payload > 0 {
                let count = rest
                    .len()
                    .min(usize::try_from(self.payload).unwrap_or(usize::MAX));
                self.payload -= count as u64;
                self.unreturned += usize::from(self.payload == 0);
                at += count;
                continue;
            }
            let before = self.head.len();
            let count = rest.len().min(HEAD - before);
            self.head.extend_from_slice(&rest[..count]);
            let mut cursor = Cursor::new(&self.head);
            match FrameHeader::parse(&mut cursor) {
                Ok(None) => at += count,
                Ok(Some((header, length))) => {
                    at += cursor.position() as usize - before;
                    self.begin_frame(&header, length);
                }
                // The library comes to it as well.
                Err(_) => {
                    self.payload = u64::MAX;
                    self.unreturned += 1;
                }
            }
        }
        self.received += at;
        at
    }

    fn begin_frame(&mut self, header: &FrameHeader, length: u64) {
        self.head.clear();
        self.payload = length;
        self.has_grown |= length > READ_BUFFER as u64 / 2;
        // Control frames lie between the fragments of a message.
        if matches!(header.opcode, OpCode::Data(_)) {
            let length = self.message.unwrap_or(0).saturating_add(length);
            self.is_too_long = length > self.max;
            self.message = (!header.is_final).then_some(length);
        }
        self.unreturned += usize::from(length == 0 || self.is_too_long);
    }

    /// Whether the library has nothing to return or to send before it is given more. It is not asked
    /// then, which would cost more than all else that a wake-up does.
    pub(super) const fn is_all_returned(&self) -> bool {
        self.unreturned == 0 && !self.is_blocked
    }
}

impl<S: AsyncRead + Unpin> ByteStream<S> {
    /// Reads unless something is there for the library; ready when something is.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.ahead.is_empty() || self.end.is_some() || self.is_too_long {
            return Poll::Ready(());
        }
        self.ahead.reserve(self.read_size);
        // The future holds nothing between polls, so one for each poll loses nothing.
        let read = pin!(self.io.read_buf(&mut self.ahead)).poll(cx);
        match read {
            Poll::Pending => {
                self.ahead = BytesMut::new();
                self.read_size = AHEAD;
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => self.end = Some(Ok(())),
            Poll::Ready(Ok(count)) if count >= self.read_size => self.read_size = MOST_AHEAD,
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => self.end = Some(Err(error)),
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ByteStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_too_long {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        ready!(this.poll_fill(cx));
        if let Some(end) = this.end.take() {
            return Poll::Ready(end);
        }
        let before = buffer.filled().len();
        let count = this.ahead.len().min(buffer.remaining());
        buffer.put_slice(&this.ahead[..count]);
        this.ahead.advance(count);
        let count = this.follow(&buffer.filled()[before..]);
        buffer.set_filled(before + count);
        this.is_active = true;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ByteStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.is_unflushed = true;
        self.is_blocked = written.is_pending();
        self.is_active = true;
        // The library writes all of its buffer.
        self.has_grown |= bytes.len() > READ_BUFFER;
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.is_blocked = flushed.is_pending();
        self.is_unflushed &= !matches!(flushed, Poll::Ready(Ok(())));
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
