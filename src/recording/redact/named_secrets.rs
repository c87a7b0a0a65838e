//! Finds secrets that are short or not random after names that leave no doubt:
//! `GITHUB_TOKEN=…`, `api_key: …`, `<password>…`, `login me password …`.
//!
//! See `shapes` for random values after any suggestive name, `commands` for command lines.

use std::ops::Range;
use std::sync::LazyLock;

use super::commands::{is_null, value};
use super::escapes::quote_count;
use super::names::{begins_part, is_secret_member, normalize};
use super::random::{is_random, reads_as_words};
use super::runs::{self, MAX_JUDGED, Run, is_code};
use super::table::{List, has, rows, words};

/// Minimum length of a password chosen by a person.
const MIN_PASSWORD: usize = 8;

/// Minimum length of the value of a variable.
const MIN_VARIABLE: usize = 6;

/// Bytes before a name that are searched.
const LOOK_BEHIND: usize = 96;

/// Name endings, without dashes and in lower case, that only secrets have.
static CERTAIN: List = LazyLock::new(|| words(include_str!("tables/sure.txt")));

/// Name endings of members that hold a secret if the value has the given form.
static MEMBER_FORMS: LazyLock<Vec<[&str; 2]>> =
    LazyLock::new(|| rows(include_str!("tables/held.txt")).collect());

/// Whether a name, with all its parts, denotes only secrets.
pub(super) fn is_certain(name: &[u8]) -> bool {
    let plain = normalize(name);
    CERTAIN.iter().any(|end| plain.ends_with(end.as_bytes())) || is_short_name(name)
}

/// Whether a member has a short name for a secret, as in the settings of Docker and of mailers.
pub(super) fn is_short_name(name: &[u8]) -> bool {
    [&b"auth"[..], b"pass"].contains(&name)
}

/// Whether a name ends like those of members that may hold a secret.
pub(super) fn may_hold_secret(name: &[u8]) -> bool {
    expected_form(name).is_some()
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
        Some(_) => runs::end(text, 0) == text.len() && is_key_like(text),
    }
}

/// The value named as a password at a position where only values stand: in an attribute or element
/// of XML, an entry of a connection string or query, a constant definition.
pub(super) fn delimited(
    text: &[u8],
    name: Range<usize>,
    partial: bool,
    last: &mut Range<usize>,
) -> Option<Range<usize>> {
    let whole = &text[name.clone()];
    let chosen = matches!(expected_form(whole), Some("pwd" | "password"));
    if !chosen && !is_certain(whole) {
        return None;
    }
    let before = &text[name.start.saturating_sub(LOOK_BEHIND)..name.start];
    let quotes = quote_count(text, name.end);
    let rest = &text[name.end + quotes..];
    let tag = before.iter().rev().find(|byte| b"<>".contains(byte)) == Some(&b'<');
    let entry = before.trim_ascii_end().last();
    let listed = entry.is_some_and(|byte| b";&?".contains(byte))
        || before.ends_with(b",")
        || before.ends_with(b"from-literal=");
    let defined = || {
        let quotes = |byte: &u8| b"\\\"' ".contains(byte);
        let call = before.iter().rposition(|byte| !quotes(byte));
        call.is_some_and(|call| before[..=call].ends_with(b"define("))
    };
    let separator_len = match rest {
        [b'>', ..] if tag && quotes == 0 => 1,
        [b'=', b'"' | b'\'' | b'\\', ..] if tag && quotes == 0 => 1,
        [b'=', ..] if listed && quotes == 0 => 1,
        [b',', b' ', ..] if quotes > 0 && defined() => 2,
        [b',', ..] if quotes > 0 && defined() => 1,
        _ if quotes > 0 && tag && rest.starts_with(b" value=") => 7,
        _ => return None,
    };
    let own = value(text, name.end + quotes + separator_len, last)?;
    let word = &text[own.clone()];
    let open = partial && own.end == text.len();
    let element = rest[0] == b'>' && !open && !text[own.end..].starts_with(b"<");
    let code = matches!(text.get(own.end), Some(b'(' | b'[' | b')'))
        || matches!(word, [b'/' | b'~' | b'.', ..])
        || word.contains(&b'.') && reads_as_words(word);
    let is_none = is_null(word, false) || has(&["required", "string", "password"], word, false);
    (!element && !code && !is_none && (chosen || is_key_like(word))).then_some(own)
}

/// Whether a session setting with that id is a secret.
pub(super) fn is_secret_setting(id: &str) -> bool {
    is_certain(id.as_bytes()) || is_secret_member(id)
}

/// Whether a word of a name, together with the text before it, leaves no doubt: `API key`,
/// `?key=`.
pub(super) fn is_certain_after(before: &[u8], word: &[u8]) -> bool {
    let key = word.eq_ignore_ascii_case(b"key");
    let last = before.len().saturating_sub("private ".len());
    let kinds = [&b"api "[..], b"access ", b"secret ", b"private "];
    let kind = || {
        let last = before[last..].to_ascii_lowercase();
        kinds.iter().any(|kind| last.ends_with(kind))
    };
    key && (matches!(before.last(), Some(b'?' | b'&')) || kind())
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

/// Whether a value after a certain name is a secret: paths, members and calls are not; words only
/// if the name is `placed` where nothing but values follow.
pub(super) fn is_certain_value(own: &Run<'_>, placed: bool) -> bool {
    let code = own.is_code || memchr::memchr2(b'.', b'/', own.head).is_some();
    !code && may_be_password(own.head) && (placed || !own.reads_as_words())
}

/// Whether a name is that of a parameter in a URL's query (`?token=`), of a long option
/// (`--token=`) or of a header (`X-Api-Key:`).
pub(super) fn names_value(text: &[u8], name: &Range<usize>) -> bool {
    let whole = &text[name.clone()];
    let queried = matches!(text[..name.start].last(), Some(b'?' | b'&'));
    match text.get(name.end) {
        Some(b'=') => queried || whole.starts_with(b"--"),
        Some(b':') => whole.starts_with(b"X-") || whole.starts_with(b"x-"),
        _ => false,
    }
}

/// The value of a variable whose name is in capitals and leaves no doubt. `name` goes from its
/// start to the equals sign.
pub(super) fn variable_value(
    text: &[u8],
    name: Range<usize>,
    partial: bool,
    last: &mut Range<usize>,
) -> Option<Range<usize>> {
    let whole = &text[name.clone()];
    let is_variable = text.get(name.end) == Some(&b'=')
        && !whole.starts_with(b"-")
        && !whole.iter().any(u8::is_ascii_lowercase)
        && is_certain(whole);
    if !is_variable {
        return None;
    }
    let own = value(text, name.end + 1, last)?;
    let word = &text[own.clone()];
    let open = partial && own.end == text.len();
    // Names in a row share one value, which is searched for each of them.
    let mut head = word.iter().take(MAX_JUDGED);
    let code = is_code(text, own.end)
        || head.any(|byte| b"./:@".contains(byte))
        || word.ends_with(b"_")
        // The name of another variable.
        || word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let enough = open || word.len() >= MIN_VARIABLE;
    (enough && !code && !word.iter().all(u8::is_ascii_digit)).then_some(own)
}

/// The form that a secret has in a member with such a name.
fn expected_form(name: &[u8]) -> Option<&'static str> {
    let own = std::str::from_utf8(name).ok()?;
    let plain = normalize(name);
    let form = MEMBER_FORMS
        .iter()
        .find(|[end, _]| plain.ends_with(end.as_bytes()));
    let [end, form] = form?;
    let alone = plain == end.as_bytes() || begins_part(own, name.len().checked_sub(end.len())?);
    // Other words end like the shortest endings, such as `compat`.
    (alone || end.len() > 3 || *end == "pwd").then_some(form)
}

/// The start of the name that contains the word at `at`.
pub(super) fn name_start(text: &[u8], at: usize) -> usize {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let start = at - text[..at].iter().rev().take(24).take_while(part).count();
    // The letter of an escaped line break does not belong to the name.
    let escaped = start < at && text[..start].ends_with(b"\\");
    start + usize::from(escaped && b"nrt".contains(&text[start]))
}

/// The end of the name that contains an announcing word, within 24 bytes.
pub(super) fn name_end(text: &[u8], from: usize) -> usize {
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let name = text[from..].iter().take(24).take_while(|byte| rest(byte));
    from + name.count()
}

/// Whether a value follows the word `password` and a blank because of the text before it:
/// `machine x login y password z`, as in a `.netrc`.
pub(super) fn follows_login(before: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(LOOK_BEHIND)..];
    let contains = |word: &[u8]| memchr::memmem::find(near, word).is_some();
    before
        .last()
        .is_none_or(|byte| !byte.is_ascii_alphanumeric())
        && (contains(b"login ") || contains(b"machine "))
}
