//! Measures for how long a side was not read because of backpressure.

use std::time::{Duration, Instant};

use crate::jsonrpc::Side;

/// Since when each side is blocked.
#[derive(Debug, Default)]
pub(super) struct Pauses([Option<Instant>; 2]);

impl Pauses {
    /// Records whether `side` is blocked at the moment; returns the duration of a pause that is
    /// over.
    pub(super) fn mark(&mut self, side: Side, blocked: bool, now: Instant) -> Option<Duration> {
        let since = &mut self.0[side as usize];
        if blocked {
            since.get_or_insert(now);
            return None;
        }
        since
            .take()
            .map(|since| now.saturating_duration_since(since))
    }
}
