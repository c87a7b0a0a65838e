//! Warnings that any peer can cause at any rate: one line per second, with a count of the rest.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time between two lines of the same kind.
const PAUSE: Duration = Duration::from_secs(1);

/// Limits the rate of one kind of warning, and counts those that were left out.
#[derive(Debug, Default)]
pub(super) struct Seldom(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// Logs `what` as a warning, or at debug level if a warning was logged within [`INTERVAL`].
    pub(super) fn warn(&self, what: std::fmt::Arguments<'_>) {
        match self.turn(Instant::now()) {
            None => tracing::debug!("{what}"),
            Some(0) => tracing::warn!("{what}"),
            Some(left_out) => {
                tracing::warn!("{what} ({left_out} more like this since the last line)")
            }
        }
    }

    /// How many warnings were left out, if one may be logged now.
    fn turn(&self, now: Instant) -> Option<u64> {
        let mut said = self.0.lock();
        if said
            .last
            .is_some_and(|last| now.duration_since(last) < PAUSE)
        {
            said.left_out += 1;
            return None;
        }
        said.last = Some(now);
        Some(std::mem::take(&mut said.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line_a_second_and_what_is_left_out_is_counted() {
        let seldom = Seldom::default();
        let start = Instant::now();
        assert_eq!(seldom.turn(start), Some(0));
        for _ in 0..1000 {
            assert_eq!(seldom.turn(start + PAUSE / 2), None);
        }
        assert_eq!(seldom.turn(start + PAUSE), Some(1000));
        assert_eq!(seldom.turn(start + PAUSE * 2), Some(0));
    }
}
