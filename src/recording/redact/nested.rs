//! JSON that is a string in JSON: what tools were asked and have answered, configurations.
//!
//! Its places tell as much as those of the message itself. It is walked through like a message, and
//! put back as a string. Not here: walking (see `walk`); JSON in the midst of other text, of which
//! only shapes are found (see `shapes`).

use super::redactor::Redactor;
use super::rule::Hits;
use super::walk::walk;
use crate::jsonrpc::{Limits, is_json};

/// How many strings deep JSON is looked for.
const DEEPEST: usize = 2;

/// What some programs write before a text.
const MARK: &str = "\u{feff}";

/// Whether a string, with its quotes, may be JSON with members.
pub(super) fn may_be(string: &[u8]) -> bool {
    let inner = string.strip_prefix(b"\"").unwrap_or(string);
    let inner = inner.strip_prefix(MARK.as_bytes()).unwrap_or(inner);
    let has = |quote: &[u8]| memchr::memmem::find(inner, quote).is_some();
    // Escaped line breaks and spaces come before it at times, and quotes are escaped in two ways.
    matches!(inner.trim_ascii_start().first(), Some(b'{' | b'[' | b'\\'))
        && (has(b"\\\"") || has(b"\\u0022"))
}

/// The text as a string without its secrets, and why they were kept out; `None` when it has none,
/// is no JSON, or stands in too many strings.
pub(super) fn clean(
    redactor: &Redactor,
    text: &str,
    fields: &[&str],
    depth: usize,
) -> Option<(Vec<u8>, Hits)> {
    let json = text.strip_prefix(MARK).unwrap_or(text);
    let is_json = depth < DEEPEST
        && json.trim_start().starts_with(['{', '['])
        && is_json(json.as_bytes(), &Limits::default());
    let clean = is_json.then(|| walk(redactor, json.as_bytes(), false, fields, depth + 1))??;
    let mark = &text[..text.len() - json.len()];
    let whole = format!("{mark}{}", String::from_utf8(clean.text).ok()?);
    Some((serde_json::to_vec(&whole).ok()?, clean.hits))
}
