//! Redacts JSON that is encoded as a string in JSON: tool calls and results, configurations.
//!
//! It is walked like a message and encoded again. In JSON embedded in other text only shapes are
//! found (see `shapes`).

use super::hits::Hits;
use super::redactor::Redactor;
use super::walk::walk;
use crate::jsonrpc::{Limits, is_json};

/// The number of nested strings in which JSON is searched.
const MAX_DEPTH: usize = 2;

/// A byte order mark that some programs write before a text.
const BOM: &str = "\u{feff}";

/// Whether a string, including its quotes, may be JSON with members.
pub(super) fn may_be_json(string: &[u8]) -> bool {
    let inner = string.strip_prefix(b"\"").unwrap_or(string);
    let inner = inner.strip_prefix(BOM.as_bytes()).unwrap_or(inner);
    let has = |quote: &[u8]| memchr::memmem::find(inner, quote).is_some();
    // It may begin with escaped line breaks and spaces, and quotes have two escapes.
    matches!(inner.trim_ascii_start().first(), Some(b'{' | b'[' | b'\\'))
        && (has(b"\\\"") || has(b"\\u0022"))
}

/// The encoded text without its secrets, and the rules that applied; `None` when it has none, is
/// not JSON, or is nested too deeply.
pub(super) fn clean(
    redactor: &Redactor,
    text: &str,
    fields: &[&str],
    depth: usize,
) -> Option<(Vec<u8>, Hits)> {
    let json = text.strip_prefix(BOM).unwrap_or(text);
    let is_json = depth < MAX_DEPTH
        && json.trim_start().starts_with(['{', '['])
        && is_json(json.as_bytes(), &Limits::default());
    let clean = is_json.then(|| walk(redactor, json.as_bytes(), false, fields, depth + 1))??;
    let bom = &text[..text.len() - json.len()];
    let whole = format!("{bom}{}", String::from_utf8(clean.text).ok()?);
    Some((serde_json::to_vec(&whole).ok()?, clean.hits))
}
