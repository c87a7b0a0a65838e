//! Compares and converts JSON text that is known to be valid.
//!
//! `jsonrpc::text` locates the parts of a text.

use schemars::JsonSchema;
use serde::Deserialize;

pub(super) use jsonrpc::text::{
    items, member, members, same_ignoring_case, same_name, string, string_end, unescape,
};

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
