//! Rate limits of the log, so that no peer can fill a disk with it: one for all lines together, and
//! one for each kind of warning that any peer can cause.

use std::time::Instant;

use parking_lot::Mutex;

/// A token bucket for lines.
#[derive(Debug)]
pub(super) struct RateLimit {
    /// Lines that may come at once.
    burst: u32,
    /// Lines a second in the long run.
    rate: u32,
    lines: f64,
    since: Option<Instant>,
    /// Lines dropped since the last one that was written.
    left_out: u64,
}

/// Limits one kind of warning to a line a second.
#[derive(Debug)]
pub(super) struct LimitedWarning(Mutex<RateLimit>);

impl RateLimit {
    pub(super) const fn new(burst: u32, rate: u32) -> Self {
        Self {
            burst,
            rate,
            lines: burst as f64,
            since: None,
            left_out: 0,
        }
    }

    /// How many lines were dropped before this one, if this one may be written.
    pub(super) fn acquire(&mut self, now: Instant) -> Option<u64> {
        let since = *self.since.get_or_insert(now);
        let more = now.saturating_duration_since(since).as_secs_f64() * f64::from(self.rate);
        self.lines = (self.lines + more).min(f64::from(self.burst));
        self.since = Some(now);
        if self.lines < 1. {
            self.left_out += 1;
            return None;
        }
        self.lines -= 1.;
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
        Self(Mutex::new(RateLimit::new(1, 1)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dropped_lines_are_counted() {
        for (burst, rate) in [(1, 1), (1000, 20)] {
            let mut limit = RateLimit::new(burst, rate);
            let start = Instant::now();
            let printed = (0..10_000).filter(|_| limit.acquire(start).is_some());
            assert_eq!(printed.count(), burst as usize);
            let second = start + Duration::from_secs(1);
            assert_eq!(limit.acquire(second), Some(10_000 - u64::from(burst)));
            let printed = (0..10_000).filter(|_| limit.acquire(second).is_some());
            assert_eq!(printed.count(), rate as usize - 1);
            let hour = start + Duration::from_secs(3600);
            let printed = (0..10_000).filter(|_| limit.acquire(hour).is_some());
            let what = "what was not used is not saved up";
            assert_eq!(printed.count(), burst as usize, "{what}");
        }
    }
}
