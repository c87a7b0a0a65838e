//! Times as microseconds since 1970, and as dates in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;

/// Microseconds from 1970 to a time; 0 for an earlier one.
#[must_use]
pub fn unix_micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

/// Formats microseconds since 1970 as in `2026-11-20T15:59:00Z`; beyond the year 9999, as `@` and
/// the seconds.
#[must_use]
pub fn rfc3339(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let at = i64::try_from(seconds).ok();
    let Some(at) = at.and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok()) else {
        return format!("@{seconds}");
    };
    let (year, month, day) = at.to_calendar_date();
    let month = u8::from(month);
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
