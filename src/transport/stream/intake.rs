//! The buffer that bytes are read into, and its size.
//!
//! It grows while a peer sends much and is released a second after the peer has stopped, because
//! most links are idle most of the time. Small messages are copied out of it when they would keep
//! much unused memory alive (see `buffer_pool`).

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, Sleep, sleep};

use super::thrift::Thrift;

/// The buffer of a link with little traffic, in bytes. An idle link keeps it, so it is most of what
/// an idle link costs; under load the buffer grows after a few reads.
pub(in crate::transport) const SMALL: usize = 2 << 10;
/// The largest single read, in bytes.
pub(in crate::transport) const LARGE: usize = 64 << 10;
/// A read with less room than this is not worth its system call.
const ROOM: usize = 1 << 10;
/// How long a larger buffer is kept while the peer sends nothing.
pub(in crate::transport) const KEPT: Duration = Duration::from_secs(1);

/// A reader and its buffer.
#[derive(Debug)]
pub(in crate::transport) struct Intake<R> {
    io: R,
    /// Bytes that were read and not consumed yet. Messages cut from it share its memory.
    pub(in crate::transport) buffer: BytesMut,
    /// Room made before a read, in bytes.
    want: usize,
    /// The memory behind `bytes`.
    pub(in crate::transport) memory: Thrift,
    /// Runs while a large buffer is idle.
    quiet: Option<Pin<Box<Sleep>>>,
    timing: bool,
}

impl<R> Intake<R> {
    /// `initial` holds bytes of the stream that were read before.
    pub(in crate::transport) fn new(io: R, begun: BytesMut) -> Self {
        Self {
            io,
            memory: Thrift::new(&begun),
            buffer: begun,
            want: SMALL,
            quiet: None,
            timing: false,
        }
    }

    /// Releases the buffer for good.
    pub(in crate::transport) fn done(&mut self) {
        self.buffer = BytesMut::new();
        self.memory.is_given_back();
        self.quiet = None;
    }

    /// Releases a large buffer when nothing has arrived for a while. Called when there is nothing
    /// to read, so that the timer wakes the task.
    pub(in crate::transport) fn rest(&mut self, cx: &mut Context<'_>) {
        let is_roomy = self.memory.size() > SMALL && self.buffer.is_empty();
        if !is_roomy && !self.memory.has_large() {
            return;
        }
        let quiet = self.quiet.get_or_insert_with(|| Box::pin(sleep(KEPT)));
        if !self.timing {
            quiet.as_mut().reset(Instant::now() + KEPT);
            self.timing = true;
        }
        if quiet.as_mut().poll(cx).is_ready() {
            if is_roomy {
                self.done();
                self.want = SMALL;
            } else {
                self.memory.forget_large();
            }
            self.timing = false;
        }
    }
}

impl<R: AsyncRead + Unpin> Intake<R> {
    /// Reads once; zero bytes are the end of the stream.
    pub(in crate::transport) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < ROOM {
            self.memory.make_room(&mut self.buffer, self.want);
        }
        let room = (self.buffer.capacity() - self.buffer.len()).min(LARGE);
        let read = ready!(poll_into(&mut self.io, &mut self.buffer, room, cx))?;
        if read == room {
            self.want = (self.want * 2).min(LARGE);
        }
        self.timing = false;
        Poll::Ready(Ok(read))
    }
}

fn poll_into<R: AsyncRead + Unpin>(
    io: &mut R,
    target: &mut BytesMut,
    most: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut target = target.limit(most);
    // The future holds nothing between polls, so making one for each poll loses nothing.
    pin!(io.read_buf(&mut target)).poll(cx)
}
