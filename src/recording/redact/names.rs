//! Names that tell that what they name is a secret.
//!
//! The search for words has to stop at each of them in every spelling that is in use (see `words`);
//! a test walks all of them (`tests/it/recording/names.rs`). Not here: what a secret looks like (see
//! `shapes`).

use std::ops::Range;
use std::sync::LazyLock;

use super::table::{List, words};

/// Headers that carry credentials. Capitals begin words; however those are put together, it is the
/// same name.
static HEADERS: List = LazyLock::new(|| words(include_str!("tables/headers.txt")));

/// Members that hold a secret, whatever it looks like.
static MEMBERS: List = LazyLock::new(|| words(include_str!("tables/members.txt")));

/// Parts of names that tell, in lower case.
static PARTS: List = LazyLock::new(|| words(include_str!("tables/parts.txt")));

/// Those of them that words begin with, too: `keyboard`, `tokenizer`, `secretary`.
const WHOLE: [&str; 3] = ["key", "token", "secret"];

/// Words that end as a part does, in lower case.
const OTHERS: [&str; 12] = [
    "monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "hotkey", "turnkey", "lackey",
    "mickey", "smokey", "flunkey",
];

/// A password, or the folder at hand.
const PWD: &str = "pwd";

/// How the names of members end whose lists and members are secrets, in lower case.
static GROUPS: List = LazyLock::new(|| words(include_str!("tables/groups.txt")));

/// Whether a name tells that its value is a secret.
pub(super) fn is_telling(name: &str) -> bool {
    if is_one_of(&HEADERS, name) || is(PWD, name) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    PARTS.iter().any(|part| {
        let mut places = lower.match_indices(part);
        places.any(|(at, _)| !WHOLE.contains(part) || is_word(name, at..at + part.len()))
    })
}

/// Whether what stands there is a word of a name, or ends one that is put together with it.
fn is_word(name: &str, at: Range<usize>) -> bool {
    let lower = name[..at.end].to_ascii_lowercase();
    let is_other = OTHERS.iter().any(|other| lower.ends_with(other));
    ends_part(name, at.end) && (begins_part(name, at.start) || !is_other)
}

/// Whether a word of a name begins there.
pub(super) fn begins_part(name: &str, at: usize) -> bool {
    let (before, own) = name.as_bytes().split_at(at);
    let small = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    before.last().is_none_or(|byte| !byte.is_ascii_alphabetic())
        || (small(before.last()) && !small(own.first()))
}

/// Whether a word of a name ends there, or but for an s.
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

/// Headers that carry credentials, wherever they stand, and what is named a password.
pub(super) fn is_secret_member(name: &str) -> bool {
    is_one_of(&HEADERS, name) || is_one_of(&MEMBERS, name)
}

/// Whether what stands in the list or object of this name is judged as if it had a telling name.
pub(super) fn is_group(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    GROUPS.iter().any(|group| lower.ends_with(group))
}

/// Whether a name, telling as it is, counts something.
pub(super) fn counts(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with("tokens") || lower.ends_with("keys")
}

/// Whether this is the folder at hand and no password.
pub(super) fn is_folder(name: &str, inner: &[u8]) -> bool {
    name.to_ascii_lowercase().ends_with(PWD)
        && matches!(inner, [b'/' | b'~' | b'.' | b'\\', ..] | [_, b':', ..])
}

/// Whether all that is said in and after a request of this method is secret.
pub(super) fn is_secret_method(method: &[u8]) -> bool {
    method == b"authenticate" || method.ends_with(b"/authenticate")
}

fn is_one_of(known: &[&str], name: &str) -> bool {
    known.iter().any(|known| is(known, name))
}

/// Whether it is that name, however it is spelled.
fn is(known: &str, name: &str) -> bool {
    let letters = name.bytes().filter(|byte| !b"-_".contains(byte));
    letters
        .map(|byte| byte.to_ascii_lowercase())
        .eq(known.bytes().map(|byte| byte.to_ascii_lowercase()))
}
