//! Warnings that any peer can cause at any rate: one line per second, with a count of the rest.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time between two lines of the same kind.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limits the rate of one kind of warning, and counts those that were left out.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<ThrottleState>);

#[derive(Debug, Default)]
struct ThrottleState {
    last: Option<Instant>,
    left_out: u64,
}

impl Throttle {
    /// Logs `what` as a warning, or at debug level if a warning was logged within [`INTERVAL`].
    pub(super) fn warn(&self, what: std::fmt::Arguments<'_>) {
        match self.check(Instant::now()) {
            None => tracing::debug!("{what}"),
            Some(0) => tracing::warn!("{what}"),
            Some(left_out) => {
                tracing::warn!("{what} ({left_out} more like this since the last line)")
            }
        }
    }

    /// How many warnings were left out, if one may be logged now.
    fn check(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state
            .last
            .is_some_and(|last| now.duration_since(last) < INTERVAL)
        {
            state.left_out += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_and_dropped_lines_are_counted() {
        let throttle = Throttle::default();
        let start = Instant::now();
        assert_eq!(throttle.check(start), Some(0));
        for _ in 0..1000 {
            assert_eq!(throttle.check(start + INTERVAL / 2), None);
        }
        assert_eq!(throttle.check(start + INTERVAL), Some(1000));
        assert_eq!(throttle.check(start + INTERVAL * 2), Some(0));
    }
}
