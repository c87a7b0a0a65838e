//! Reads the current time.

use std::time::{Instant, SystemTime};

use auth::Now;

/// The current time, by the monotonic clock and since 1970.
#[must_use]
pub fn current_time() -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Now {
        instant: Instant::now(),
        unix: since.map_or(0, |since| since.as_secs()),
    }
}
