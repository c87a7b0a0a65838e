//! Formats durations, times, sizes and texts for people.

use std::fmt::Write as _;

use crate::jsonrpc::printable;
use crate::recording::show_halves;

/// Maximum characters of an excerpt.
const MAX_EXCERPT: usize = 120;

/// Microseconds as a duration.
pub(super) fn duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros / 100 % 10),
        _ => format!("{}.{:02} s", micros / 1_000_000, micros / 10_000 % 100),
    }
}

/// Microseconds as seconds with six decimals.
pub(super) fn timestamp(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A number of bytes.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{}.{} KiB", bytes / 1_024, bytes % 1_024 * 10 / 1_024),
        _ => format!(
            "{}.{} MiB",
            bytes / 1_048_576,
            bytes % 1_048_576 * 10 / 1_048_576
        ),
    }
}

/// The beginning of a text, escaped and in one line.
pub(super) fn excerpt(text: &[u8]) -> String {
    let cut = text.len().min(4 * MAX_EXCERPT);
    let whole = printable(&text[..cut]);
    let whole = show_halves(&whole);
    let mut shown: String = whole.chars().take(MAX_EXCERPT).collect();
    if cut < text.len() || shown.len() < whole.len() {
        // Writing to a string does not fail.
        let _ = write!(shown, "…");
    }
    shown
}
