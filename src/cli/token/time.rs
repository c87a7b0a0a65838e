//! When a token expires: parsing and formatting.

use std::time::{Duration, SystemTime};

/// Longest validity of a token, in seconds.
const LONGEST: u64 = 100 * 366 * 86_400;

/// Parses `30d`, `12h`, `90m`.
pub(super) fn read(text: &str) -> Result<Duration, String> {
    let expected = "expected a number of days, hours or minutes: 30d, 12h, 90m";
    let unit = text.chars().last().ok_or(expected)?;
    let seconds: u64 = match unit {
        'd' => 86_400,
        'h' => 3600,
        'm' => 60,
        _ => return Err(expected.to_owned()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| expected)?;
    let seconds = number
        .checked_mul(seconds)
        .filter(|all| (1..=LONGEST).contains(all));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        "a token is valid for at least a minute, and at most a hundred years".to_owned()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_hours_and_minutes() {
        assert_eq!(read("30d"), Ok(Duration::from_secs(2_592_000)));
        assert_eq!(read("90m"), Ok(Duration::from_secs(5400)));
        for bad in [
            "",
            "d",
            "30",
            "-1d",
            "0d",
            "1é",
            "99999999999999999999d",
            "400000d",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
