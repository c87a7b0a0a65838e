//! Texts for people: durations, times, sizes, counts, excerpts and tables.

use std::fmt::Display;

use serde::Serializer;
use serde_json::Value;

use jsonrpc::printable;
use recording::show_halves;

/// Maximum characters of an excerpt.
const MAX_EXCERPT: usize = 120;

/// Where messages have words that distinguish them from others of the same method.
const POINTERS: [&str; 12] = [
    "/params/update/sessionUpdate",
    "/params/update/status",
    "/params/update/title",
    "/params/update/content/text",
    "/params/update/currentModeId",
    "/params/toolCall/title",
    "/params/path",
    "/params/command",
    "/params/prompt/0/text",
    "/result/stopReason",
    "/result/outcome/outcome",
    "/error/message",
];

/// Maximum width of all columns but the last; a wider cell shifts the rest of its line.
const MAX_WIDTH: usize = 52;

/// Microseconds as a duration.
pub fn duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros / 100 % 10),
        _ => format!("{}.{:02} s", micros / 1_000_000, micros / 10_000 % 100),
    }
}

/// Microseconds as seconds with six decimals.
pub fn timestamp(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Microseconds as seconds in JSON.
///
/// # Errors
/// None of its own.
pub fn seconds<S: Serializer>(micros: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*micros as f64 / 1e6)
}

/// A number of bytes.
pub fn size(bytes: u64) -> String {
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
pub fn excerpt(text: &[u8]) -> String {
    let cut = text.len().min(4 * MAX_EXCERPT);
    let whole = printable(&text[..cut]);
    let whole = show_halves(&whole);
    let mut shown: String = whole.chars().take(MAX_EXCERPT).collect();
    if cut < text.len() || shown.len() < whole.len() {
        shown.push('…');
    }
    shown
}

/// `1 rule`, `2 rules`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// The words that distinguish a message from others of the same method, not escaped.
pub fn summary(message: &Value) -> String {
    let at = |pointer: &&str| message.pointer(pointer)?.as_str();
    let mut words: Vec<&str> = POINTERS.iter().filter_map(at).collect();
    if let Some(option) = at(&"/result/outcome/optionId") {
        words = vec![option];
    }
    words.join(" ")
}

/// Aligns the cells of `rows`, two spaces between columns. The last column is not padded.
pub fn table(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|cell| cell.chars().count());
        widths.filter(|width| *width <= MAX_WIDTH).max()
    };
    let widths: Vec<usize> = (0..count)
        .map(|column| width(column).unwrap_or_default())
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}
