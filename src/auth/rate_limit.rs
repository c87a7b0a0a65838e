//! The one rate limit of this program: some events at once, and one after each interval in the long
//! run. What is not used is not saved up. Time is an argument.

use std::time::{Duration, Instant};

/// A rate limit of one kind of event.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// How long one event takes at the limit's rate.
    each: Duration,
    /// How much longer than the time passed all events may take.
    burst: Duration,
    /// When all events so far would have happened at the limit's rate.
    until: Option<Instant>,
}

impl RateLimit {
    /// Allows `burst` worth of events at once, each of which takes `each`.
    #[must_use]
    pub const fn new(each: Duration, burst: Duration) -> Self {
        Self {
            each,
            burst,
            until: None,
        }
    }

    /// Allows this many events in an interval, and as many at once.
    #[must_use]
    pub fn per(interval: Duration, events: usize) -> Self {
        let events = u32::try_from(events).unwrap_or(u32::MAX).max(1);
        Self::new(interval / events, interval)
    }

    /// Counts an event.
    ///
    /// # Errors
    /// It is too early, and not counted: the time until it is allowed.
    pub fn acquire(&mut self, now: Instant) -> Result<(), Duration> {
        let before = self.until;
        match self.charge(self.each, now) {
            Duration::ZERO => Ok(()),
            wait => {
                self.until = before;
                Err(wait)
            }
        }
    }

    /// Counts an event that takes `cost`, and returns how long the next one has to wait.
    pub fn charge(&mut self, cost: Duration, now: Instant) -> Duration {
        let until = self.until.map_or(now, |until| until.max(now)) + cost;
        self.until = Some(until);
        (until - now).saturating_sub(self.burst)
    }

    /// Whether it would be the same without the events so far.
    #[must_use]
    pub fn is_idle(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// When it will be idle.
    pub(super) const fn idle_at(&self) -> Option<Instant> {
        self.until
    }
}
