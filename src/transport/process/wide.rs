//! The pipe an agent writes into, made wider when the agent streams.
//!
//! Linux gives a pipe 64 KiB. An agent that fills it waits until the relay has read, and the relay
//! then for the agent: each waking takes longer than the carrying does. Not here: how much is read
//! at a time (see `transport::stream`).
//!
//! # Why
//!
//! **Not from the start, and not for all.** The kernel bounds what all pipes of a user may hold, and
//! gives whoever is beyond it pipes of two pages (pipe(7), `pipe-user-pages-soft`, 64 MiB). So it is
//! done for those who fill theirs, and for [`MOST`] at a time.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use rustix::fd::AsFd;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes a wide pipe holds: the most that the system lets anybody have by itself.
const WIDE: usize = 1 << 20;
/// A read of so many bytes has found a pipe about to be full.
const FULL: usize = 48 << 10;
/// So many of them make a stream.
const STREAM: u8 = 4;
/// Wide pipes at a time, a quarter of what the kernel lets a user have.
const MOST: usize = 16;

/// How many there are.
static THERE_ARE: AtomicUsize = AtomicUsize::new(0);

/// The end of a pipe that is read from.
#[derive(Debug)]
pub(super) struct Pipe<P> {
    pipe: P,
    width: Width,
}

#[derive(Debug)]
enum Width {
    /// As the system made it, and found full so often.
    Given(u8),
    /// Wide, or as wide as the system lets it be.
    Wide {
        /// While it is.
        _permit: Option<Permit>,
    },
}

/// One of [`MOST`].
#[derive(Debug)]
struct Permit;

impl<P> Pipe<P> {
    pub(super) const fn new(pipe: P) -> Self {
        let width = Width::Given(0);
        Self { pipe, width }
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
        if let Width::Given(full) = &mut self.width
            && into.filled().len() - before >= FULL
        {
            *full += 1;
            if *full == STREAM {
                let _permit = widen(&self.pipe);
                self.width = Width::Wide { _permit };
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Permit {
    fn take() -> Option<Self> {
        THERE_ARE
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |there_are| {
                (there_are < MOST).then_some(there_are + 1)
            })
            .ok()
            .map(|_| Self)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        THERE_ARE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A pipe that cannot be made wider carries as much, with more waiting.
#[cfg(target_os = "linux")]
fn widen(pipe: &impl AsFd) -> Option<Permit> {
    let permit = Permit::take()?;
    rustix::pipe::fcntl_setpipe_size(pipe, WIDE).ok()?;
    Some(permit)
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &impl AsFd) -> Option<Permit> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::pipe::fcntl_getpipe_size;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::unix::pipe::{Receiver, Sender, pipe};

    use super::*;

    /// Bytes of a pipe as the system makes them.
    const GIVEN: usize = 64 << 10;

    async fn carry(from: &mut Sender, to: &mut Pipe<Receiver>, bytes: usize) {
        from.write_all(&vec![b'a'; bytes])
            .await
            .expect("it is read");
        let mut heard = vec![0; bytes];
        to.read_exact(&mut heard).await.expect("it is written");
    }

    fn size(pipe: &Pipe<Receiver>) -> usize {
        fcntl_getpipe_size(&pipe.pipe).expect("it is a pipe")
    }

    #[tokio::test]
    async fn who_streams_gets_a_wide_pipe_while_there_are_some() {
        let mut all = Vec::new();
        for number in 0..=MOST {
            let (mut from, to) = pipe().unwrap();
            let mut to = Pipe::new(to);
            for _ in 0..100 {
                carry(&mut from, &mut to, 1000).await;
            }
            for _ in 1..STREAM {
                carry(&mut from, &mut to, GIVEN).await;
            }
            assert_eq!(size(&to), GIVEN, "pipe {number}, before it is a stream");
            carry(&mut from, &mut to, GIVEN).await;
            let wide = number < MOST;
            assert_eq!(size(&to) > GIVEN, wide, "pipe {number}");
            all.push((from, to));
        }
        all.clear();
        let (mut from, to) = pipe().unwrap();
        let mut to = Pipe::new(to);
        for _ in 0..STREAM {
            carry(&mut from, &mut to, GIVEN).await;
        }
        assert!(size(&to) > GIVEN, "those that have gone have left room");
    }
}
