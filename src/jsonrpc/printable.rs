//! Makes untrusted text safe to show on a terminal.

use std::fmt::Write as _;

/// The text without control characters and without changes of the writing direction (Unicode's
/// bidirectional formatting), with bytes that are not UTF-8 as `\xNN`.
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    text.extend(character.escape_unicode());
                }
                _ if character.is_control() => text.extend(character.escape_default()),
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// At most `most` characters of a text, and `…` if it has more.
#[must_use]
pub fn truncated(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
