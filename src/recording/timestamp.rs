//! Formats times as dates in UTC.

use time::OffsetDateTime;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_190_340, "2026-11-20T15:59:00Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000), date);
        }
        assert_eq!(rfc3339(u64::MAX), "@18446744073709");
    }
}
