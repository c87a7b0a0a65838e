//! Limits how long a disconnected client is waited for.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::jsonrpc::Limits;

/// The client is disconnected.
#[derive(Debug)]
pub(super) struct ReconnectTimer {
    since: Instant,
    until: Pin<Box<Sleep>>,
}

impl ReconnectTimer {
    /// Starts now, with an agent that is `busy` or not.
    pub(super) fn start(busy: bool, limits: &Limits) -> Self {
        let mut timer = Self {
            since: Instant::now(),
            until: Box::pin(sleep_until(Instant::now())),
        };
        timer.restart(busy, limits);
        timer
    }

    /// Sets the end: an agent without work, or that can do nothing without its client, is kept for
    /// its grace period from now.
    pub(super) fn restart(&mut self, busy: bool, limits: &Limits) {
        let longest = self.since + limits.reconnect_turn;
        let until = if busy {
            longest
        } else {
            (Instant::now() + limits.reconnect_grace).min(longest)
        };
        self.until.as_mut().reset(until);
    }

    /// Ready once it has lasted too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.until.as_mut().poll(cx)
    }
}
