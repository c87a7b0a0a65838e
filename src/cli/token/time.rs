//! When a token expires: parsing and formatting.

use std::time::{Duration, SystemTime};

use crate::jsonrpc::parse_duration;

/// Shortest and longest validity of a token.
const MINUTE: Duration = Duration::from_secs(60);
const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Parses `30d`, `12h`, `90m`.
pub(super) fn read(text: &str) -> Result<Duration, String> {
    let expected = "expected a number of days, hours or minutes: 30d, 12h, 90m";
    match parse_duration(text) {
        Err(_) => Err(expected.to_owned()),
        Ok(valid) if (MINUTE..=CENTURY).contains(&valid) => Ok(valid),
        Ok(_) => {
            Err("a token is valid for at least a minute, and at most a hundred years".to_owned())
        }
    }
}

/// Formats seconds since 1970, in UTC.
pub(super) fn show(unix: u64) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(unix);
    httpdate::fmt_http_date(at)
}

/// Now, in seconds since 1970.
pub(super) fn now() -> u64 {
    crate::transport::current_time().unix
}
