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

use super::buffer_pool::BufferPool;

/// The buffer of a link with little traffic, in bytes. An idle link keeps it, so it is most of what
/// an idle link costs; under load the buffer grows after a few reads.
pub(in crate::transport) const SMALL: usize = 2 << 10;
/// The largest single read, in bytes.
pub(in crate::transport) const LARGE: usize = 64 << 10;
/// A read with less room than this is not worth its system call.
const MIN_ROOM: usize = 1 << 10;
/// How long a larger buffer is kept while the peer sends nothing.
pub(in crate::transport) const SHRINK_AFTER: Duration = Duration::from_secs(1);

/// A reader and its buffer.
#[derive(Debug)]
pub(in crate::transport) struct ReadBuffer<R> {
    io: R,
    /// Bytes that were read and not consumed yet. Messages cut from it share its memory.
    pub(in crate::transport) bytes: BytesMut,
    /// Room made before a read, in bytes.
    read_size: usize,
    /// The memory behind `bytes`.
    pub(in crate::transport) pool: BufferPool,
    /// Runs while a large buffer is idle.
    idle_timer: Option<Pin<Box<Sleep>>>,
    timer_runs: bool,
}

impl<R> ReadBuffer<R> {
    /// `initial` holds bytes of the stream that were read before.
    pub(in crate::transport) fn new(io: R, initial: BytesMut) -> Self {
        Self {
            io,
            pool: BufferPool::new(&initial),
            bytes: initial,
            read_size: SMALL,
            idle_timer: None,
            timer_runs: false,
        }
    }

    /// Releases the buffer for good.
    pub(in crate::transport) fn release(&mut self) {
        self.bytes = BytesMut::new();
        self.pool.reset();
        self.idle_timer = None;
    }

    /// Releases a large buffer when nothing has arrived for a while. Called when there is nothing
    /// to read, so that the timer wakes the task.
    pub(in crate::transport) fn poll_shrink(&mut self, cx: &mut Context<'_>) {
        if self.pool.size() <= SMALL || !self.bytes.is_empty() {
            return;
        }
        let timer = self
            .idle_timer
            .get_or_insert_with(|| Box::pin(sleep(SHRINK_AFTER)));
        if !self.timer_runs {
            timer.as_mut().reset(Instant::now() + SHRINK_AFTER);
            self.timer_runs = true;
        }
        if timer.as_mut().poll(cx).is_ready() {
            self.release();
            self.read_size = SMALL;
            self.timer_runs = false;
        }
    }
}

impl<R: AsyncRead + Unpin> ReadBuffer<R> {
    /// Reads once; zero bytes are the end of the stream.
    pub(in crate::transport) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.pool.shrink(&mut self.bytes);
        if self.bytes.capacity() - self.bytes.len() < MIN_ROOM {
            self.pool.make_room(&mut self.bytes, self.read_size);
        }
        let room = (self.bytes.capacity() - self.bytes.len()).min(LARGE);
        let read = ready!(poll_into(&mut self.io, &mut self.bytes, room, cx))?;
        if read == room {
            self.read_size = (self.read_size * 2).min(LARGE);
        }
        self.timer_runs = false;
        Poll::Ready(Ok(read))
    }
}

fn poll_into<R: AsyncRead + Unpin>(
    io: &mut R,
    target: &mut BytesMut,
    max: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut target = target.limit(max);
    // The future holds nothing between polls, so making one for each poll loses nothing.
    pin!(io.read_buf(&mut target)).poll(cx)
}
