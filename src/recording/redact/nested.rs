//! JSON that is a string in JSON: what tools were asked and have answered, configurations.
//!
//! Its places tell as much as those of the message itself. It is walked through like a message, and
//! put back as a string. Not here: walking (see `walk`); JSON in the midst of other text, of which
//! only shapes are found (see `shapes`).

use super::redactor::Redactor;
use super::rule::Hits;
use super::walk::walk_in;
use crate::wire::{Limits, is_json};

/// How many strings deep JSON is looked for.
const DEEPEST: usize = 2;

/// Whether a string, with its quotes, may be JSON with members.
pub(super) fn may_be(string: &[u8]) -> bool {
    let inner = string.strip_prefix(b"\"").unwrap_or(string);
    let first = inner.trim_ascii_start().first();
    // Escaped line breaks and spaces come before it at times.
    matches!(first, Some(b'{' | b'[' | b'\\')) && memchr::memmem::find(inner, b"\\\"").is_some()
}

/// The text as a string without its secrets, and why they were kept out; `None` when it has none, is no JSON, or stands in too
/// many strings.
pub(super) fn clean(redactor: &Redactor, text: &str, depth: usize) -> Option<(Vec<u8>, Hits)> {
    let json = depth < DEEPEST
        && text.trim_start().starts_with(['{', '['])
        && is_json(text.as_bytes(), &Limits::default());
    let clean = json.then(|| walk_in(redactor, text.as_bytes(), false, depth + 1))??;
    let text = String::from_utf8(clean.text).ok()?;
    Some((serde_json::to_vec(&text).ok()?, clean.hits))
}
