//! Times as the person at the terminal reads them: in the zone of this machine, to the second.
//!
//! The zone is that of `TZ`, or else of /etc/localtime, and UTC if neither can be read.

use std::env;
use std::sync::LazyLock;

use time::OffsetDateTime;
use tz::TimeZone;

static ZONE: LazyLock<Option<TimeZone>> = LazyLock::new(|| {
    let zone = match env::var("TZ") {
        Ok(name) => TimeZone::from_posix_tz(&name),
        Err(_) => TimeZone::local(),
    };
    zone.ok()
});

/// Formats seconds since 1970 as in `2026-11-20 16:59:00`; beyond the year 9999, as `@` and the
/// seconds.
pub(super) fn local_time(seconds: u64) -> String {
    let shifted = i64::try_from(seconds).ok().and_then(|unix| {
        let zone = ZONE.as_ref();
        let now = zone.and_then(|zone| zone.find_local_time_type(unix).ok());
        let offset = now.map_or(0, tz::LocalTimeType::ut_offset);
        OffsetDateTime::from_unix_timestamp(unix.checked_add(offset.into())?).ok()
    });
    let Some(at) = shifted else {
        return format!("@{seconds}");
    };
    let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}
