//! When to connect again, and how long an agent is kept without a client.

use std::ops::Add;
use std::time::Duration;

/// The first attempt comes within this time, the next ones within a time that doubles.
const FIRST: Duration = Duration::from_millis(250);
const BASE: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(15);

/// The bounds of what a peer may ask for.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(60);

/// The times between attempts to connect. Each is random, so that the clients of a relay that was
/// restarted do not come at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    attempts: u32,
}

/// How long the agent of a lost client is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// While it is idle, or after its turn has ended.
    pub idle: Duration,
    /// At most, whatever it does.
    pub limit: Duration,
}

impl Backoff {
    /// The time to the next attempt; `random` is from 0 to 1, and `retry_after` what the peer asked
    /// for, of which at least 100 ms and at most a minute are kept to.
    pub fn next(&mut self, random: f64, retry_after: Option<Duration>) -> Duration {
        let retry_after = retry_after.map(|after| after.clamp(SOONEST, LATEST));
        let longest = match self.attempts {
            0 => FIRST,
            attempts => BASE.saturating_mul(1 << (attempts - 1).min(5)).min(MAX),
        };
        self.attempts += 1;
        // A peer that says when is there: it is asked soon, however often it was asked.
        let longest = retry_after.map_or(longest, |after| longest.min(after.saturating_mul(4)));
        let wait = longest.mul_f64(random.clamp(0.0, 1.0));
        wait.max(retry_after.unwrap_or_default())
    }

    /// The connection has carried something.
    pub const fn reset(&mut self) {
        self.attempts = 0;
    }
}

impl Retention {
    /// Until when the agent is kept whose client was lost at `lost`. `turn_ended` is when its last
    /// turn has ended, if that was after the loss; `None` while a turn runs.
    #[must_use]
    pub fn until<T>(&self, lost: T, turn_ended: Option<T>) -> T
    where
        T: Add<Duration, Output = T> + Copy + Ord,
    {
        let cap = lost + self.limit;
        match turn_ended {
            Some(ended) => (ended.max(lost) + self.idle).min(cap),
            None => cap,
        }
    }
}
