//! Names that suggest that their value is a secret.
//!
//! The word search has to find each of them in every common spelling (see `words`); a test checks
//! all of them (`tests/it/recording/names.rs`).

use std::ops::Range;
use std::sync::LazyLock;

use super::table::{List, words};

/// Headers that carry credentials. Capitals begin words; the spelling of the word separators is
/// ignored.
static SECRET_HEADERS: List = LazyLock::new(|| words(include_str!("tables/headers.txt")));

/// Members whose value is always a secret.
static SECRET_MEMBERS: List = LazyLock::new(|| words(include_str!("tables/members.txt")));

/// Parts of names that suggest a secret, in lower case.
static NAME_PARTS: List = LazyLock::new(|| words(include_str!("tables/parts.txt")));

/// Those of them that other words begin with: `keyboard`, `tokenizer`, `secretary`.
const WHOLE_WORDS: [&str; 3] = ["key", "token", "secret"];

/// Words that end like a part, in lower case.
const OTHER_WORDS: [&str; 12] = [
    "monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "hotkey", "turnkey", "lackey",
    "mickey", "smokey", "flunkey",
];

/// A password, or the current directory.
const PWD: &str = "pwd";

/// Name endings of members whose elements and members are secrets, in lower case.
static GROUPS: List = LazyLock::new(|| words(include_str!("tables/groups.txt")));

/// Whether a name suggests that its value is a secret.
pub(super) fn suggests_secret(name: &str) -> bool {
    if is_one_of(&SECRET_HEADERS, name) || same_name(PWD, name) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    NAME_PARTS.iter().any(|part| {
        let mut places = lower.match_indices(part);
        places.any(|(at, _)| !WHOLE_WORDS.contains(part) || is_word(name, at..at + part.len()))
    })
}

/// Whether the text at `at` is a word of a name, or ends a compound word.
fn is_word(name: &str, at: Range<usize>) -> bool {
    let lower = name[..at.end].to_ascii_lowercase();
    let is_other = OTHER_WORDS.iter().any(|other| lower.ends_with(other));
    ends_part(name, at.end) && (begins_part(name, at.start) || !is_other)
}

/// Whether a word of a name begins there.
pub(super) fn begins_part(name: &str, at: usize) -> bool {
    let (before, own) = name.as_bytes().split_at(at);
    let small = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    before.last().is_none_or(|byte| !byte.is_ascii_alphabetic())
        || (small(before.last()) && !small(own.first()))
}

/// Whether a word of a name ends there, or after a plural s.
fn ends_part(name: &str, at: usize) -> bool {
    let (before, rest) = name.as_bytes().split_at(at);
    let rest = match rest {
        [b's' | b'S', rest @ ..] => rest,
        rest => rest,
    };
    let capital = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_uppercase);
    rest.first().is_none_or(|byte| !byte.is_ascii_alphabetic())
        || (capital(rest.first()) && !capital(before.last()))
}

/// Whether a name is that of a header with credentials or of a member that is always secret.
pub(super) fn is_secret_member(name: &str) -> bool {
    is_one_of(&SECRET_HEADERS, name) || is_one_of(&SECRET_MEMBERS, name)
}

/// Whether the contents of the list or object with this name are judged as having a suggestive
/// name.
pub(super) fn is_group(name: &str) -> bool {
    let plain = normalize(name.as_bytes());
    GROUPS.iter().any(|group| plain.ends_with(group.as_bytes()))
}

/// Whether a suggestive name denotes a count.
pub(super) fn is_count(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with("tokens") || lower.ends_with("keys")
}

/// Whether this is the current directory and not a password.
pub(super) fn is_directory(name: &str, inner: &[u8]) -> bool {
    name.to_ascii_lowercase().ends_with(PWD)
        && matches!(inner, [b'/' | b'~' | b'.' | b'\\', ..] | [_, b':', ..])
}

/// Whether the whole content of a request with this method and of its answer is secret.
pub(super) fn is_secret_method(method: &[u8]) -> bool {
    method == b"authenticate" || method.ends_with(b"/authenticate")
}

fn is_one_of(known: &[&str], name: &str) -> bool {
    known.iter().any(|known| same_name(known, name))
}

/// Compares names, ignoring case, dashes and underscores.
fn same_name(known: &str, name: &str) -> bool {
    normalize(known.as_bytes()) == normalize(name.as_bytes())
}

/// A name without dashes and underscores and in lower case.
pub(super) fn normalize(name: &[u8]) -> Vec<u8> {
    let letters = name.iter().filter(|byte| !b"-_".contains(byte));
    letters.map(u8::to_ascii_lowercase).collect()
}
