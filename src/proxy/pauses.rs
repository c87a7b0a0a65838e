//! For how long a side was not heard because others were behind.
//!
//! Not here: when that is so (see `turn`).

use std::time::{Duration, Instant};

use crate::jsonrpc::Side;

/// Since when each side is held up.
#[derive(Debug, Default)]
pub(super) struct Pauses([Option<Instant>; 2]);

impl Pauses {
    /// Takes down whether `side` is held up at the moment; its length when a pause is over.
    pub(super) fn mark(&mut self, side: Side, held: bool, now: Instant) -> Option<Duration> {
        let since = &mut self.0[side as usize];
        if held {
            since.get_or_insert(now);
            return None;
        }
        since
            .take()
            .map(|since| now.saturating_duration_since(since))
    }
}
