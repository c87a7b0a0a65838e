//! A pipe that is widened under load: the stdout of an agent, and the relay's own stdout.
//!
//! Linux gives a pipe 64 KiB. A writer that fills it waits until the reader has read, and the
//! reader then for the writer: each wake-up takes longer than moving the data.
//!
//! # Decisions
//!
//! **Not from the start, and not for all.** The kernel bounds the total size of a user's pipes, and
//! beyond it new pipes have two pages (pipe(7), `pipe-user-pages-soft`, 64 MiB). So only pipes that
//! are full repeatedly are widened, and at most [`MAX_WIDE`] at a time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use rustix::fd::AsFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a wide pipe: the most that the system permits without privileges.
const WIDE_BYTES: usize = 1 << 20;
/// A read of at least this many bytes means that the pipe was nearly full.
const NEARLY_FULL: usize = 48 << 10;
/// The pipe is widened after this many full reads or writes.
const FULL_COUNT: u8 = 4;
/// Wide pipes at a time, a quarter of the kernel's bound per user.
const MAX_WIDE: usize = 16;

/// Number of wide pipes.
static WIDE_PIPES: AtomicUsize = AtomicUsize::new(0);

/// Either end of a pipe.
#[derive(Debug)]
pub(super) struct Pipe<P> {
    pipe: P,
    width: Width,
}

#[derive(Debug)]
enum Width {
    /// The system's default, with the number of times it was full.
    Initial(u8),
    /// Wide, or as wide as the system permits.
    Wide {
        /// Held while it is wide.
        _permit: Option<Slot>,
    },
}

/// One of [`MAX_WIDE`] slots.
#[derive(Debug)]
struct Slot;

impl<P> Pipe<P> {
    pub(super) const fn new(pipe: P) -> Self {
        let width = Width::Initial(0);
        Self { pipe, width }
    }
}

impl<P: AsFd> Pipe<P> {
    /// Called each time the pipe was full, or nearly.
    fn was_full(&mut self) {
        if let Width::Initial(full) = &mut self.width {
            *full += 1;
            if *full == FULL_COUNT {
                let _permit = widen(&self.pipe);
                self.width = Width::Wide { _permit };
            }
        }
    }
}

impl<P: AsyncRead + AsFd + Unpin> AsyncRead for Pipe<P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.pipe).poll_read(cx, into))?;
        if into.filled().len() - before >= NEARLY_FULL {
            self.was_full();
        }
        Poll::Ready(Ok(()))
    }
}

impl<P: AsyncWrite + AsFd + Unpin> AsyncWrite for Pipe<P> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.pipe).poll_write_vectored(cx, pieces))?;
        if written < pieces.iter().map(|piece| piece.len()).sum() {
            self.was_full();
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.pipe.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

impl Slot {
    fn take() -> Option<Self> {
        WIDE_PIPES
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < MAX_WIDE).then_some(count + 1)
            })
            .ok()
            .map(|_| Self)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        WIDE_PIPES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Widens a pipe; on failure it is used as it is.
#[cfg(target_os = "linux")]
fn widen(pipe: &impl AsFd) -> Option<Slot> {
    let slot = Slot::take()?;
    rustix::pipe::fcntl_setpipe_size(pipe, WIDE_BYTES).ok()?;
    Some(slot)
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &impl AsFd) -> Option<Slot> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::pipe::fcntl_getpipe_size;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::unix::pipe::{Receiver, Sender, pipe};

    use super::*;

    /// The system's default size of a pipe, in bytes.
    const DEFAULT_BYTES: usize = 64 << 10;

    async fn carry(from: &mut Sender, to: &mut Pipe<Receiver>, bytes: usize) {
        from.write_all(&vec![b'a'; bytes])
            .await
            .expect("it is read");
        let mut bytes_read = vec![0; bytes];
        to.read_exact(&mut bytes_read).await.expect("it is written");
    }

    fn size(pipe: &Pipe<impl AsFd>) -> usize {
        fcntl_getpipe_size(&pipe.pipe).expect("it is a pipe")
    }

    #[tokio::test]
    async fn repeatedly_full_pipe_is_widened() {
        let (to, mut from) = pipe().unwrap();
        let mut to = Pipe::new(to);
        let mut bytes_read = vec![0; DEFAULT_BYTES];
        for _ in 0..100 {
            to.write_all(&bytes_read).await.expect("it fits");
            from.read_exact(&mut bytes_read)
                .await
                .expect("it is written");
        }
        for number in 0..FULL_COUNT {
            assert_eq!(
                size(&to),
                DEFAULT_BYTES,
                "what fits is no reason, nor are {number}"
            );
            let more = vec![b'a'; DEFAULT_BYTES + 1];
            assert_eq!(
                to.write(&more).await.expect("some of it fits"),
                DEFAULT_BYTES
            );
            from.read_exact(&mut bytes_read)
                .await
                .expect("it is written");
        }
        assert!(size(&to) > DEFAULT_BYTES);
    }

    #[tokio::test]
    async fn only_streaming_pipes_are_widened() {
        let mut all = Vec::new();
        for number in 0..=MAX_WIDE {
            let (mut from, to) = pipe().unwrap();
            let mut to = Pipe::new(to);
            for _ in 0..100 {
                carry(&mut from, &mut to, 1000).await;
            }
            for _ in 1..FULL_COUNT {
                carry(&mut from, &mut to, DEFAULT_BYTES).await;
            }
            assert_eq!(
                size(&to),
                DEFAULT_BYTES,
                "pipe {number}, before it is a stream"
            );
            carry(&mut from, &mut to, DEFAULT_BYTES).await;
            let wide = number < MAX_WIDE;
            assert_eq!(size(&to) > DEFAULT_BYTES, wide, "pipe {number}");
            all.push((from, to));
        }
        all.clear();
        let (mut from, to) = pipe().unwrap();
        let mut to = Pipe::new(to);
        for _ in 0..FULL_COUNT {
            carry(&mut from, &mut to, DEFAULT_BYTES).await;
        }
        assert!(
            size(&to) > DEFAULT_BYTES,
            "dropped ones have freed their slots"
        );
    }
}
