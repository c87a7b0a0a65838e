//! A conversation's timer.
//!
//! It is only touched when its time changes, and made when it is first set: most conversations only
//! wait for their peers.

use std::future::Future as _;
use std::pin::Pin;
use std::task::Context;

use tokio::time::{Instant, Sleep, sleep_until};

/// One conversation's timer.
#[derive(Default)]
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    at: Option<Instant>,
}

impl Timer {
    /// The time it is set to.
    pub(super) const fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Sets it to that time, or clears it.
    pub(super) fn set(&mut self, at: Option<Instant>) {
        if let Some(at) = at
            && self.at != Some(at)
        {
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(at),
                None => self.sleep = Some(Box::pin(sleep_until(at))),
            }
        }
        self.at = at;
    }

    /// Whether the time has passed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let due = |sleep: &mut Pin<Box<Sleep>>| sleep.as_mut().poll(cx).is_ready();
        self.at.is_some() && self.sleep.as_mut().is_some_and(due)
    }
}
