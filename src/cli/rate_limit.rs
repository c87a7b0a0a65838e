//! The rate limit of the log, so that no peer can fill a disk with it.
//!
//! Warnings that peers can cause are limited one by one (see `throttle`, `observe::Journal`); this
//! limit is for all lines together, and for clients that reconnect again and again.

use std::time::Instant;

/// Lines that may come at once.
const BURST: u32 = 1000;

/// Lines a second in the long run: some hundred megabytes a day.
const RATE: u32 = 20;

/// A token bucket for lines.
#[derive(Debug)]
pub(super) struct RateLimit {
    lines: f64,
    since: Option<Instant>,
    /// Lines dropped since the last one that was written.
    left_out: u64,
}

impl RateLimit {
    pub(super) const fn new() -> Self {
        Self {
            lines: BURST as f64,
            since: None,
            left_out: 0,
        }
    }

    /// How many lines were dropped before this one, if this one may be written.
    pub(super) fn acquire(&mut self, now: Instant) -> Option<u64> {
        let since = *self.since.get_or_insert(now);
        let more = now.saturating_duration_since(since).as_secs_f64() * f64::from(RATE);
        self.lines = (self.lines + more).min(f64::from(BURST));
        self.since = Some(now);
        if self.lines < 1. {
            self.left_out += 1;
            return None;
        }
        self.lines -= 1.;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dropped_lines_are_counted() {
        let mut limit = RateLimit::new();
        let start = Instant::now();
        let printed = (0..10_000).filter(|_| limit.acquire(start).is_some());
        assert_eq!(printed.count(), BURST as usize);
        let second = start + Duration::from_secs(1);
        assert_eq!(limit.acquire(second), Some(9000));
        let printed = (0..10_000).filter(|_| limit.acquire(second).is_some());
        assert_eq!(printed.count(), RATE as usize - 1);
        let hour = start + Duration::from_secs(3600);
        let printed = (0..10_000).filter(|_| limit.acquire(hour).is_some());
        assert_eq!(
            printed.count(),
            BURST as usize,
            "what was not used is not saved up"
        );
    }
}
