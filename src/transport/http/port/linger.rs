//! Reads and discards for a while what a client sends after its response.
//!
//! A client that is refused in the middle of a long body continues to write, because most clients
//! look for a response only after the body. A socket that is closed with unread bytes is reset, and
//! a reset discards the response; so the sending half is closed first, and then the client's end is
//! awaited (RFC 9112, 9.6; nginx calls it `lingering_close`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Most bytes that are discarded.
const MAX_BYTES: usize = 64 << 20;
/// How long a client may send nothing.
const MAX_SILENCE: Duration = Duration::from_secs(2);
/// How long all of it may take.
const MAX_TIME: Duration = Duration::from_secs(15);
/// Bytes that are read at once.
const READ_SIZE: usize = 16 << 10;

/// The state of a socket that is being closed.
#[derive(Debug)]
pub(super) struct Linger {
    left: usize,
    deadline: Instant,
    idle_timer: Pin<Box<Sleep>>,
}

impl Linger {
    /// Starts now.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            left: MAX_BYTES,
            deadline: now + MAX_TIME,
            idle_timer: Box::pin(sleep_until(now + MAX_SILENCE)),
        }
    }

    /// Reads on; ready when the client has ended its half, or a limit is reached.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Poll<()> {
        let mut bytes = [0; READ_SIZE];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read: Poll<io::Result<()>> = Pin::new(&mut *stream).poll_read(cx, &mut buffer);
            match read {
                Poll::Pending => return self.idle_timer.as_mut().poll(cx),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {}
            }
            let length = buffer.filled().len();
            self.left = self.left.saturating_sub(length);
            let now = Instant::now();
            if length == 0 || self.left == 0 || now >= self.deadline {
                return Poll::Ready(());
            }
            let until = (now + MAX_SILENCE).min(self.deadline);
            self.idle_timer.as_mut().reset(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt as _, duplex, repeat};
    use tokio::time::{sleep, timeout};

    use super::*;

    async fn linger(mut stream: impl AsyncRead + Unpin) -> Duration {
        let began = Instant::now();
        let mut linger = Linger::new();
        poll_fn(|cx| linger.poll(cx, &mut stream)).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn lingering_ends_with_the_client_or_a_timeout() {
        let (near, mut far) = duplex(64);
        let client = async move {
            for _ in 0..100 {
                far.write_all(&[0; 100]).await.expect("the other end reads");
            }
            sleep(MAX_SILENCE / 2).await;
        };
        let (took, ()) = tokio::join!(linger(near), client);
        assert_eq!(took, MAX_SILENCE / 2);

        let (near, _silent) = duplex(64);
        let waited = linger(near).await;
        assert!(
            waited >= MAX_SILENCE && waited < MAX_SILENCE * 2,
            "{waited:?}"
        );

        let (near, mut far) = duplex(64);
        let drips = async move {
            while far.write_all(&[0]).await.is_ok() {
                sleep(MAX_SILENCE / 2).await;
            }
        };
        let (waited, ()) = tokio::join!(linger(near), drips);
        assert!(
            waited >= MAX_TIME && waited < MAX_TIME + MAX_SILENCE,
            "{waited:?}"
        );

        let endless = timeout(MAX_TIME, linger(repeat(0))).await;
        assert!(endless.is_ok(), "no client sends for ever");
    }
}
