//! Reads JSON text that is known to be valid, without building values.
//!
//! `jsonrpc::scan` has validated the text; here its parts are located. Invalid input (a bug) yields
//! wrong slices, never a panic.

use std::borrow::Cow;
use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::Deserialize;

/// The kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JsonType {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// The members of an object: raw names without their quotes, raw values.
#[derive(Clone, Debug)]
pub(super) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub(super) struct Items<'a> {
    text: &'a [u8],
    at: usize,
}

impl JsonType {
    /// The type of a value, by its first byte.
    pub(super) fn of(text: &[u8]) -> Self {
        match text.first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

/// The members of the object that `text` is.
pub(super) fn members(text: &[u8]) -> Members<'_> {
    Members { text, at: 1 }
}

/// The elements of the array that `text` is.
pub(super) fn items(text: &[u8]) -> Items<'_> {
    Items { text, at: 1 }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let start = separator(self.text, self.at);
        if self.text.get(start) != Some(&b'"') {
            return None;
        }
        let end = string_end(self.text, start);
        let colon = space(self.text, end);
        let from = space(self.text, colon + 1);
        let to = value_end(self.text, from);
        self.at = to;
        Some((self.text.get(start + 1..end - 1)?, self.text.get(from..to)?))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let from = separator(self.text, self.at);
        if matches!(self.text.get(from), None | Some(b']')) {
            return None;
        }
        let to = value_end(self.text, from);
        self.at = to;
        self.text.get(from..to)
    }
}

/// Skips white space.
fn space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Skips white space and one comma.
fn separator(text: &[u8], at: usize) -> usize {
    let at = space(text, at);
    match text.get(at) {
        Some(b',') => space(text, at + 1),
        _ => at,
    }
}

/// The position after the string that starts at `at`.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(rest) = text.get(at..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(step) if rest[step] == b'"' => return at + step + 1,
            Some(step) => at += step + 2,
            None => break,
        }
    }
    text.len()
}

/// The position after the value that starts at `start`.
pub(super) fn value_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    match text.get(at) {
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            while let Some(byte) = text.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(text, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            text.len()
        }
        Some(_) => {
            while let Some(byte) = text.get(at) {
                if matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
                    break;
                }
                at += 1;
            }
            // At least one byte is consumed, so that iteration ends.
            at.max(start + 1)
        }
        None => text.len(),
    }
}

/// Whether a raw name (without quotes) is `plain`.
#[inline]
pub(super) fn same_name(raw: &[u8], plain: &str) -> bool {
    match raw.len().cmp(&plain.len()) {
        Ordering::Less => false,
        Ordering::Equal => raw == plain.as_bytes() && !raw.contains(&b'\\'),
        // Every escape is longer than the character, and escapes in names are rare.
        Ordering::Greater => {
            (raw[0] == b'\\' || plain.as_bytes().first() == Some(&raw[0]))
                && is_escaped_form(raw, plain)
        }
    }
}

/// Whether `raw` is `plain` written with escapes.
#[inline(never)]
fn is_escaped_form(raw: &[u8], plain: &str) -> bool {
    let mut both = raw.iter().zip(plain.as_bytes());
    let differs = |(one, other): &(&u8, &u8)| **one == b'\\' || one != other;
    let begins = both.find(differs).is_some_and(|(byte, _)| *byte == b'\\');
    begins && unescape(raw).is_some_and(|name| name == plain)
}

/// The text of a raw string without its quotes; `None` when it contains half a surrogate pair.
pub(super) fn unescape(raw: &[u8]) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', raw).is_none() {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice::<String>(&quoted)
        .ok()
        .map(Cow::Owned)
}

/// The text of a JSON string, quotes included; `None` for other values.
pub(super) fn string(raw: &[u8]) -> Option<Cow<'_, str>> {
    unescape(raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// A text as a JSON string, with its quotes.
pub(super) fn quote(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).expect("every text has a spelling in JSON")
}

/// A text as it is written between the quotes of a JSON string.
pub(super) fn escaped(text: &str) -> Vec<u8> {
    let mut raw = quote(text);
    raw.pop();
    raw.remove(0);
    raw
}

/// The text without the white space between its tokens.
pub(super) fn compact(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = string_end(text, at);
                out.extend_from_slice(&text[at..end]);
                at = end;
            }
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

/// Whether two JSON texts are the same value: the order of members and the spelling of strings
/// and numbers do not matter. Costs what the shorter text costs, times the width of its objects.
pub(super) fn same(one: &[u8], two: &[u8]) -> bool {
    same_at(one, two, 0)
}

/// Whether a value equals a literal of a table.
pub(super) fn equals(literal: &[u8], value: &[u8]) -> bool {
    // Literals have the shortest spelling.
    let is_short = || value.first() == Some(&b'"') && value.len() < literal.len();
    literal == value || !is_short() && may_be_respelled(value) && same(literal, value)
}

/// Whether a value may equal a literal with other bytes. Tables escape only what has to be escaped,
/// so a string without escapes has no other spelling there.
pub(super) fn may_be_respelled(value: &[u8]) -> bool {
    value.first() != Some(&b'"') || memchr::memchr(b'\\', value).is_some()
}

fn same_at(one: &[u8], two: &[u8], depth: usize) -> bool {
    let kind = JsonType::of(one);
    if one == two {
        return true;
    }
    if kind != JsonType::of(two) || depth > 128 {
        return false;
    }
    match kind {
        JsonType::Null => true,
        JsonType::Boolean => false,
        JsonType::String => match (string(one), string(two)) {
            (Some(one), Some(two)) => one == two,
            _ => false,
        },
        JsonType::Number => same_number(one, two),
        JsonType::Array => {
            let (mut left, mut right) = (items(one), items(two));
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(one), Some(two)) if same_at(one, two, depth + 1) => {}
                    _ => return false,
                }
            }
        }
        JsonType::Object => {
            let within = |some: &[u8], all: &[u8]| {
                members(some).all(|(name, value)| {
                    let Some(name) = unescape(name) else {
                        return false;
                    };
                    member(all, &name).is_some_and(|other| same_at(value, other, depth + 1))
                })
            };
            members(one).count() == members(two).count() && within(one, two)
        }
    }
}

fn same_number(one: &[u8], two: &[u8]) -> bool {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    let whole = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i128>().ok();
    match (whole(one), whole(two)) {
        (Some(one), Some(two)) => one == two,
        _ => number(one).is_some_and(|value| number(two) == Some(value)),
    }
}

/// A whole number in its plain spelling; it may be written `1.0` or `1e0`.
pub(super) fn integer(number: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(number).ok()?;
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.to_string());
    }
    let value: f64 = text.parse().ok()?;
    // Beyond that doubles are not exact. A zero loses its sign.
    let exact = value.fract() == 0.0 && value.abs() < 9e15;
    exact.then(|| format!("{:.0}", value + 0.0))
}

/// The member of an object by its name. The last one counts, as it does for most readers.
pub(super) fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    if JsonType::of(object) != JsonType::Object {
        return None;
    }
    members(object)
        .filter(|(raw, _)| same_name(raw, name))
        .map(|(_, value)| value)
        .last()
}

/// The value of a member or an element.
pub(super) fn child<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    match JsonType::of(text) {
        JsonType::Object => member(text, name),
        JsonType::Array => items(text).nth(array_index(name)?),
        _ => None,
    }
}

/// An array index (RFC 6901, section 4: no leading zeros).
pub(super) fn array_index(name: &str) -> Option<usize> {
    let plain = name == "0" || !name.starts_with('0');
    name.parse()
        .ok()
        .filter(|_| plain && !name.starts_with('+'))
}
