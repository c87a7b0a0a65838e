//! Names that suggest that their value is a secret, and the values that such names have.
//!
//! The word search has to find each of them in every common spelling (see `words`); a test checks
//! all of them (`tests/it/recording/names.rs`).

use std::ops::Range;
use std::sync::LazyLock;

use super::random::{is_random, reads_as_words};
use super::runs::run_end;
use super::table::{List, rows, words};

/// Minimum length of a password chosen by a person.
const MIN_PASSWORD: usize = 8;

/// Minimum digits of a number that a suggestive name beside it makes a secret.
const MIN_DIGITS: usize = 6;

/// Headers that carry credentials. Capitals begin words; the spelling of the word separators is
/// ignored.
static SECRET_HEADERS: List = LazyLock::new(|| words(include_str!("tables/headers.txt")));

/// Members whose value is always a secret.
static SECRET_MEMBERS: List = LazyLock::new(|| words(include_str!("tables/members.txt")));

/// Parts of names that suggest a secret, in lower case.
static NAME_PARTS: List = LazyLock::new(|| words(include_str!("tables/parts.txt")));

/// Name endings of members whose elements and members are secrets, in lower case.
static GROUPS: List = LazyLock::new(|| words(include_str!("tables/groups.txt")));

/// Name endings, without dashes and in lower case, that only secrets have.
static CERTAIN: List = LazyLock::new(|| words(include_str!("tables/sure.txt")));

/// Name endings of members that hold a secret if the value has the given form.
static MEMBER_FORMS: LazyLock<Vec<[&str; 2]>> =
    LazyLock::new(|| rows(include_str!("tables/held.txt"), " ").collect());

/// Those of the name parts that other words begin with: `keyboard`, `tokenizer`, `secretary`.
const WHOLE_WORDS: [&str; 3] = ["key", "token", "secret"];

/// Words that end like a part, in lower case.
const OTHER_WORDS: [&str; 12] = [
    "monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "hotkey", "turnkey", "lackey",
    "mickey", "smokey", "flunkey",
];

/// A password, or the current directory.
const PWD: &str = "pwd";

/// Whether a name suggests that its value is a secret.
pub(super) fn suggests_secret(name: &str) -> bool {
    if is_one_of(&SECRET_HEADERS, name) || is_one_of(&[PWD], name) {
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
fn begins_part(name: &str, at: usize) -> bool {
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

/// Whether a name, with all its parts, denotes only secrets.
pub(super) fn is_certain(name: &[u8]) -> bool {
    let plain = normalize(name);
    CERTAIN.iter().any(|end| plain.ends_with(end.as_bytes())) || is_short_name(name)
}

/// Whether a member has a short name for a secret, as in the settings of Docker and of mailers.
pub(super) fn is_short_name(name: &[u8]) -> bool {
    [&b"auth"[..], b"pass"].contains(&name)
}

/// Whether a session setting with that id is a secret.
pub(super) fn is_secret_setting(id: &str) -> bool {
    is_certain(id.as_bytes()) || is_secret_member(id)
}

/// Whether a name ends like those of members that may hold a secret.
pub(super) fn may_hold_secret(name: &[u8]) -> bool {
    expected_form(name).is_some()
}

/// The form that a secret has in a member with such a name.
pub(super) fn expected_form(name: &[u8]) -> Option<&'static str> {
    let own = std::str::from_utf8(name).ok()?;
    let plain = normalize(name);
    let forms = &mut MEMBER_FORMS.iter();
    let [end, form] = forms.find(|[end, _]| plain.ends_with(end.as_bytes()))?;
    let alone = plain == end.as_bytes() || begins_part(own, name.len().checked_sub(end.len())?);
    // Other words end like the shortest endings, such as `compat`.
    (alone || end.len() > 3 || *end == PWD).then_some(form)
}

/// Whether the value of a member with such a name, or a text after it, is a secret.
pub(super) fn is_secret_value(name: &[u8], text: &[u8]) -> bool {
    let digits = text.iter().any(u8::is_ascii_digit);
    let code = text.iter().any(|byte| b" \t\n(){}<>".contains(byte))
        || text.first().is_none_or(|byte| b"$%*/~.\\".contains(byte))
        || text.get(1) == Some(&b':');
    match expected_form(name) {
        None => false,
        Some("connection") => memchr::memchr2(b'=', b'@', text).is_some(),
        Some(_) if code => false,
        Some("code") => digits,
        // The name alone also denotes the current directory.
        Some("pwd") if name.len() > 3 => true,
        Some("pwd" | "password") => digits || !reads_as_words(text),
        Some(_) => run_end(text, 0) == text.len() && is_key_like(text),
    }
}

/// Whether it may be a password chosen by a person.
pub(super) fn may_be_password(text: &[u8]) -> bool {
    let digits = text.iter().any(u8::is_ascii_digit);
    text.len() >= MIN_PASSWORD && digits && text.iter().any(u8::is_ascii_alphabetic)
}

/// Whether it may be a password or is random, and is not made of words.
pub(super) fn is_key_like(text: &[u8]) -> bool {
    (is_random(text) || may_be_password(text)) && !reads_as_words(text)
}

/// Whether a string, including its quotes, or a number is the secret that a name beside it denotes.
pub(super) fn is_value(name: &str, whole: &[u8]) -> bool {
    let text = unquoted(whole);
    if !suggests_secret(name) {
        return is_secret_value(name.as_bytes(), text.unwrap_or(whole));
    }
    match text {
        Some(inner) => {
            let counted = inner.len() < MIN_DIGITS && inner.iter().all(u8::is_ascii_digit);
            !(is_directory(name, inner) || (counted && is_count(name)))
        }
        None => whole.len() >= MIN_DIGITS && !is_count(name),
    }
}

/// Whether the value of a secret session setting, including its quotes, is a secret and not a
/// choice among words.
pub(super) fn is_setting(whole: &[u8]) -> bool {
    unquoted(whole).is_some_and(is_key_like)
}

/// The contents of a string, without its quotes.
fn unquoted(whole: &[u8]) -> Option<&[u8]> {
    whole.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// The start of the name that contains the word at `at`.
pub(super) fn name_start(text: &[u8], at: usize) -> usize {
    let start = at - text[..at].iter().rev().take(24).take_while(is_part).count();
    // The letter of an escaped line break does not belong to the name.
    let escaped = start < at && text[..start].ends_with(b"\\");
    start + usize::from(escaped && b"nrt".contains(&text[start]))
}

/// The end of the name that contains an announcing word, within 24 bytes.
pub(super) fn name_end(text: &[u8], from: usize) -> usize {
    from + text[from..].iter().take(24).take_while(is_part).count()
}

fn is_part(byte: &&u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_".contains(byte)
}

/// Whether a name is one of those known, ignoring case, dashes and underscores.
fn is_one_of(known: &[&str], name: &str) -> bool {
    let plain = normalize(name.as_bytes());
    known
        .iter()
        .any(|known| known.as_bytes().eq_ignore_ascii_case(&plain))
}

/// A name without dashes and underscores and in lower case.
fn normalize(name: &[u8]) -> Vec<u8> {
    let letters = name.iter().filter(|byte| !b"-_".contains(byte));
    letters.map(u8::to_ascii_lowercase).collect()
}
