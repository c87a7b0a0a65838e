//! When a peer that sends nothing gets a ping, and when its connection counts as lost.
//!
//! # Why
//! **A peer that is not silent gets a pong (RFC 6455, 5.5.3).** Its ping may lie behind much that we
//! have not received yet, or that we do not read because the other side is slow, and a peer like us
//! would take us for lost. For the same reason our own time counts only while we read, and while
//! the socket takes what we send: a socket that is full is judged by TCP (`Limits::tcp_user_timeout`).

use std::future::Future as _;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::LinkError;

/// Shortest interval: a timer that is always due would keep the task busy.
const LEAST: Duration = Duration::from_millis(10);
/// Pings go at the ends of such parts of an interval, those of all connections at the same times: most
/// of what an idle connection costs is to wake its thread.
const PARTS: u32 = 16;

/// How long one peer has been silent.
#[derive(Debug)]
pub(super) struct Liveness {
    /// Time without a byte before a ping, and then for anything to come.
    interval: Duration,
    /// Bytes have come since the last look at the clock.
    pub(super) received: bool,
    /// A ping was sent, and nothing has come since.
    pinged: bool,
    /// When the last bytes came or the ping was sent; the timer is set to an interval later at most.
    timing: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Pong,
    Ping,
    /// The connection is lost.
    Loss,
}

impl Liveness {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval: interval.max(LEAST),
            received: false,
            pinged: false,
            timing: None,
        }
    }

    /// The connection may be lost: a ping is being sent, and is to be answered within this time.
    pub(super) fn suspect(&mut self, within: Duration) {
        let lost = Instant::now() + within;
        let since = lost.checked_sub(self.interval).unwrap_or(lost);
        self.timing = Some((since, Box::pin(sleep_until(lost))));
        self.pinged = true;
    }

    /// What is due, now that nothing more can be read. `excused` is a peer that cannot be judged.
    pub(super) fn poll(&mut self, excused: bool, cx: &mut Context<'_>) -> Poll<Due> {
        let (now, interval) = (Instant::now(), self.interval);
        let (since, timer) = self
            .timing
            .get_or_insert_with(|| (now, Box::pin(sleep_until(ping_at(now, interval)))));
        if mem::take(&mut self.received) || excused {
            *since = now;
            if mem::take(&mut self.pinged) {
                timer.as_mut().reset(ping_at(now, interval));
            }
        }
        ready!(timer.as_mut().poll(cx));
        if self.pinged && now >= *since + interval {
            timer.as_mut().reset(now + interval);
            return Poll::Ready(Due::Loss);
        }
        let next = ping_at(*since, interval);
        if now < next {
            timer.as_mut().reset(next);
            return Poll::Ready(Due::Pong);
        }
        *since = now;
        self.pinged = true;
        timer.as_mut().reset(now + interval);
        Poll::Ready(Due::Ping)
    }

    /// What is reported of a connection that is lost.
    pub(super) fn loss(&self) -> LinkError {
        let silent = 2 * self.interval;
        let what = format!(
            "it was silent for {silent:?} and did not answer a ping; it hangs, or a tunnel, proxy \
             or network on the way does. Check these and connect again"
        );
        LinkError::Io {
            context: "waiting for the peer",
            source: io::Error::new(io::ErrorKind::TimedOut, what),
        }
    }
}

/// When a peer gets a ping that has been silent since then.
fn ping_at(since: Instant, interval: Duration) -> Instant {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let at = since + interval;
    let past = at.saturating_duration_since(*BEGAN).as_nanos() % (interval / PARTS).as_nanos();
    at - Duration::from_nanos(u64::try_from(past).unwrap_or_default())
}
