//! Rate limits of the log, so that no peer can fill a disk with it: one for all lines together, and
//! one for each kind of warning that any peer can cause.

use std::time::{Duration, Instant};

use auth::RateLimit;
use panics::SharedMutex;

/// A rate limit of lines that counts those left out.
#[derive(Debug)]
pub(super) struct LineLimit {
    limit: RateLimit,
    /// Lines dropped since the last one that was written.
    left_out: u64,
}

/// Limits one kind of warning to a line a second.
#[derive(Debug)]
pub(super) struct LimitedWarning(SharedMutex<LineLimit>);

impl LineLimit {
    /// Allows `burst` lines at once, and one after each `interval`.
    pub(super) const fn new(interval: Duration, burst: u32) -> Self {
        Self {
            limit: RateLimit::new(interval, interval.saturating_mul(burst)),
            left_out: 0,
        }
    }

    /// How many lines were dropped before this one, if this one may be written.
    pub(super) fn acquire(&mut self, now: Instant) -> Option<u64> {
        if self.limit.acquire(now).is_err() {
            self.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut self.left_out))
    }
}

impl LimitedWarning {
    /// Logs `text` as a warning, or at debug level if there was a warning within a second.
    pub(super) fn warn(&self, text: std::fmt::Arguments<'_>) {
        let acquired = self.0.lock().acquire(Instant::now());
        match acquired {
            None => tracing::debug!("{text}"),
            Some(0) => tracing::warn!("{text}"),
            Some(left_out) => {
                tracing::warn!("{text} ({left_out} more like this since the last line)")
            }
        }
    }
}

impl Default for LimitedWarning {
    fn default() -> Self {
        Self(SharedMutex::new(LineLimit::new(Duration::from_secs(1), 1)))
    }
}
