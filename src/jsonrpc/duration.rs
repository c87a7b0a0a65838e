//! Durations as people write them.

use std::time::Duration;

/// The units, in seconds.
const UNITS: [(&str, f64); 5] = [
    ("ms", 0.001),
    ("s", 1.),
    ("m", 60.),
    ("h", 3600.),
    ("d", 86_400.),
];

/// Parses a number with a unit: `250ms`, `2s`, `1.5m`, `12h`, `30d`.
///
/// # Errors
/// When it is not a duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = UNITS
        .iter()
        .find(|(unit, _)| *unit == &text[number.len()..]);
    let seconds = unit.and_then(|(_, factor)| Some(number.parse::<f64>().ok()? * factor));
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{text:?} is no duration; expected one such as 250ms, 2s or 1m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_with_a_unit() {
        for (text, millis) in [
            ("250ms", 250),
            ("2s", 2000),
            ("1.5m", 90_000),
            ("12h", 43_200_000),
            ("30d", 2_592_000_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)));
        }
        for text in [
            "", "s", "2", "-1s", "1e99d", "infs", "2 s", "2x", "1é", "s2",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
