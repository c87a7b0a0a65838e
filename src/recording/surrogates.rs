//! JSON with lone surrogates, as a tree.
//!
//! Programs that keep text as UTF-16 may cut an emoji in two and send each half in a message of its
//! own. That is JSON (RFC 8259, 8.2) but not Unicode text, so no Rust string can hold it. Here a
//! half becomes a private-use character, and two adjacent halves become the original character.
//! Captures encode lines that are not messages as strings in which bytes that are not UTF-8 are
//! lone surrogates, too; those are converted back to bytes. Messages themselves are never changed.

use std::borrow::Cow;

use serde_json::Value;

/// The private-use character for the half U+D800; the other 2047 follow it.
const FIRST_HALF: u32 = 0x10_F000;

/// Parses JSON that may have lone surrogates; `None` when it is not JSON.
#[must_use]
pub fn parse_json(json: &[u8]) -> Option<Value> {
    match serde_json::from_slice(json) {
        Ok(tree) => Some(tree),
        Err(_) => serde_json::from_slice(&replacement(json)?).ok(),
    }
}

/// The position of the first lone surrogate in a JSON text.
#[must_use]
pub fn find_lone(json: &[u8]) -> Option<usize> {
    halves(json).next().map(|(at, _)| at)
}

/// The bytes that a JSON string encodes; `None` when it is not a string.
///
/// The halves U+DC80 to U+DCFF are bytes that are not UTF-8, as in Python's `surrogateescape`.
/// Any other half is encoded as UTF-8 would encode it (WTF-8).
#[must_use]
pub fn decode_bytes(json: &[u8]) -> Option<Vec<u8>> {
    let inner = json.trim_ascii().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut out = Vec::with_capacity(inner.len());
    let add = |out: &mut Vec<u8>, part: &[u8]| {
        let whole = [b"\"", part, b"\""].concat();
        let text = serde_json::from_slice::<String>(&whole).ok()?;
        out.extend_from_slice(text.as_bytes());
        Some(())
    };
    let mut done = 0;
    for (at, half) in halves(inner) {
        add(&mut out, inner.get(done..at)?)?;
        match half {
            0xDC80..0xDD00 => out.push((half & 0xFF) as u8),
            _ => {
                let part = |shift: u32| 0x80 | ((half >> shift) & 0x3F) as u8;
                out.extend_from_slice(&[0xED, part(6), part(0)]);
            }
        }
        done = at + 6;
    }
    add(&mut out, inner.get(done..)?)?;
    Some(out)
}

/// Encodes any bytes as a JSON string; [`decode_bytes`] is the inverse.
#[must_use]
pub fn encode_bytes(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for part in bytes.utf8_chunks() {
        let text = Value::from(part.valid()).to_string();
        out += &text[1..text.len() - 1];
        for byte in part.invalid() {
            out += &format!("\\udc{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// Joins adjacent halves into the characters they encode.
#[must_use]
pub fn join_halves(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut high = None;
    for character in text.chars() {
        let half = half_of(character);
        match (high.take(), half) {
            (Some((_, high)), Some(low @ 0xDC00..)) => {
                let code = 0x1_0000_u32 + ((high - 0xD800) << 10) + (low - 0xDC00);
                joined.extend(char::from_u32(code));
                continue;
            }
            (Some((lone, _)), _) => joined.push(lone),
            (None, _) => {}
        }
        match half {
            Some(half @ ..0xDC00) => high = Some((character, half)),
            _ => joined.push(character),
        }
    }
    joined.extend(high.map(|(lone, _)| lone));
    joined
}

/// Text for display, in which a half is shown as `\\ud83d` and not as a private-use character.
#[must_use]
pub fn show_halves(text: &str) -> Cow<'_, str> {
    escape_halves(text, "\\u")
}

/// The same for JSON text, which stays valid for all readers.
#[must_use]
pub fn show_halves_json(json: &str) -> Cow<'_, str> {
    escape_halves(json, "\\\\u")
}

fn escape_halves<'a>(text: &'a str, escape: &str) -> Cow<'a, str> {
    if !text.chars().any(|character| half_of(character).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match half_of(character) {
            Some(half) => out += &format!("{escape}{half:04x}"),
            None => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// The half that a private-use character represents.
fn half_of(character: char) -> Option<u32> {
    let at = u32::from(character).checked_sub(FIRST_HALF)?;
    (at < 0x800).then_some(0xD800 + at)
}

/// The text with each lone half replaced; `None` when there is none.
fn replacement(json: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(json.len());
    let mut done = 0;
    for (at, half) in halves(json) {
        let replacement = char::from_u32(FIRST_HALF + half - 0xD800)?;
        out.extend_from_slice(json.get(done..at)?);
        out.extend_from_slice(replacement.encode_utf8(&mut [0; 4]).as_bytes());
        done = at + 6;
    }
    out.extend_from_slice(json.get(done..)?);
    (done > 0).then_some(out)
}

/// The lone halves: the position of each `\uXXXX`, and its code.
fn halves(json: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += memchr::memchr(b'\\', json.get(at..)?)?;
            let start = at;
            let Some(half @ 0xD800..0xE000) = escape(json, at) else {
                at += 2;
                continue;
            };
            at += 6;
            let is_pair = half < 0xDC00 && matches!(escape(json, at), Some(0xDC00..0xE000));
            if is_pair {
                at += 6;
            } else {
                return Some((start, half));
            }
        }
    })
}

/// The code of the `\uXXXX` that begins at `at`.
fn escape(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
