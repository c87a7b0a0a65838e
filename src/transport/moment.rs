//! Reads the current time.

use std::time::{Instant, SystemTime};

use crate::auth::Moment;

/// The current time, by the monotonic clock and since 1970.
#[must_use]
pub fn moment() -> Moment {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Moment {
        instant: Instant::now(),
        unix: since.map_or(0, |since| since.as_secs()),
    }
}
