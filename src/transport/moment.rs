//! What time it is, for those who are told it.

use std::time::{Instant, SystemTime};

use crate::auth::Moment;

/// Now.
#[must_use]
pub fn moment() -> Moment {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Moment {
        instant: Instant::now(),
        unix: since.map_or(0, |since| since.as_secs()),
    }
}
