//! Points in time, as stored and as shown.

use std::fmt;

use serde::{Serialize, Serializer};
use time::OffsetDateTime;

/// Microseconds since 1970 in UTC; displayed as RFC 3339.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = i128::from(self.0) * 1000;
        // Only a damaged store holds years beyond the range of RFC 3339.
        let Ok(at) = OffsetDateTime::from_unix_timestamp_nanos(nanos) else {
            return write!(f, "@{}", self.0.div_euclid(1_000_000));
        };
        let (year, month, day) = at.to_calendar_date();
        let month = u8::from(month);
        let (hour, minute, second, micros) = at.to_hms_micro();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
