//! Microseconds in recordings: written as seconds with six decimals.

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de, ser};
use serde_json::value::RawValue;

/// Converts seconds with up to six decimals to microseconds.
pub(super) fn parse(seconds: &[u8]) -> Option<u64> {
    let seconds = std::str::from_utf8(seconds).ok()?;
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = part.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > 6 || !digits {
        return None;
    }
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(part)
}

pub(super) fn serialize<S: Serializer>(micros: &u64, to: S) -> Result<S::Ok, S::Error> {
    raw("", *micros).map_err(ser::Error::custom)?.serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = <&RawValue>::deserialize(from)?.get();
    parse(text.as_bytes()).ok_or_else(|| de::Error::custom("it is not a time"))
}

fn raw(sign: &str, micros: u64) -> serde_json::Result<Box<RawValue>> {
    let mut text = Vec::new();
    write(&mut text, sign.as_bytes(), micros);
    RawValue::from_string(String::from_utf8_lossy(&text).into_owned())
}

/// Microseconds, written as seconds.
pub(super) fn write(out: &mut Vec<u8>, name: &[u8], micros: u64) {
    out.extend_from_slice(name);
    digits(out, micros / 1_000_000);
    // With a one before it, the fraction keeps its zeros; the point takes the place of the one.
    let point = out.len();
    digits(out, 1_000_000 + micros % 1_000_000);
    if let Some(byte) = out.get_mut(point) {
        *byte = b'.';
    }
}

/// A number in decimal digits; `serde_json` writes them faster than `write!`.
pub(super) fn digits(out: &mut Vec<u8>, value: u64) {
    serde_json::to_writer(out, &value).expect("a number can be written to memory");
}

/// The same for a difference of times, which may be negative.
pub(super) mod signed_seconds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(micros: &i64, to: S) -> Result<S::Ok, S::Error> {
        let sign = if *micros < 0 { "-" } else { "" };
        let raw = raw(sign, micros.unsigned_abs()).map_err(ser::Error::custom)?;
        raw.serialize(to)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and no clock jumps that far"
    )]
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        // Of a tagged enum, no raw text is left; a double is exact for 285 years.
        Ok((f64::deserialize(from)? * 1e6).round() as i64)
    }
}
