//! Comments, keys and strings of TOML.

use std::fmt::Write as _;

use serde_json::json;

use jsonrpc::printable;

/// A line of comment.
pub(super) fn comment(text: &mut String, line: &str) {
    let _ = writeln!(text, "# {}", printable(line.as_bytes()));
}

/// A key of TOML, in quotes if it needs them.
pub(super) fn key(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A string of TOML. JSON has the same escapes, but needs fewer.
pub(super) fn quoted(text: &str) -> String {
    let json = json!(text).to_string();
    let escaped = json
        .chars()
        .map(|letter| match is_plain(&letter.to_string()) {
            true => letter.to_string(),
            false => format!("\\u{:04x}", u32::from(letter)),
        });
    escaped.collect()
}

/// JSON text as a string of TOML, without escapes where that is possible.
pub(super) fn literal(json: &str) -> String {
    match (is_plain(json) && !json.contains("'''"), json.contains('\'')) {
        (false, _) => quoted(json),
        (_, true) => format!("'''{json}'''"),
        _ => format!("'{json}'"),
    }
}

/// Whether a text can be shown as it is.
fn is_plain(text: &str) -> bool {
    printable(text.as_bytes()) == text
}
