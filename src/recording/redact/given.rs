//! Secrets that are too short to look random, or that somebody has thought up, behind a name that
//! leaves no doubt: `GITHUB_TOKEN=…`, `api_key: …`, `<password>…`, `login me password …`.
//!
//! Not here: what looks random behind any telling name (see `shapes`), passwords in command lines
//! (see `commands`).

use std::ops::Range;

use super::commands::value;
use super::names::is_secret_member;
use super::random::reads_as_words;

/// Fewest characters of a secret that somebody has chosen.
const CHOSEN: usize = 8;

/// Fewest characters of what is put into a variable.
const VARIABLE: usize = 6;

/// Bytes before a name that are looked at.
const BEFORE: usize = 96;

/// How names end, without dashes and in lower case, that nothing but a secret has.
const SURE: [&[u8]; 10] = [
    b"token",
    b"secret",
    b"apikey",
    b"accesskey",
    b"secretkey",
    b"privatekey",
    b"authkey",
    b"signingkey",
    b"credential",
    b"credentials",
];

/// Whether a name, with all that it is put together with, is one that only a secret has.
pub(super) fn is_sure(name: &[u8]) -> bool {
    let plain: Vec<u8> = name
        .iter()
        .filter(|byte| !b"-_".contains(byte))
        .map(u8::to_ascii_lowercase)
        .collect();
    SURE.iter().any(|end| plain.ends_with(end)) || is_short(name)
}

/// Whether a member has a short name for a secret, as in the settings of Docker and of mailers.
pub(super) fn is_short(name: &[u8]) -> bool {
    [&b"auth"[..], b"pass"].contains(&name)
}

/// Whether a session's setting of that id is a secret.
pub(super) fn is_login(id: &str) -> bool {
    is_sure(id.as_bytes()) || is_secret_member(id)
}

/// Whether a word of a name, from `start` on, leaves no doubt by what stands before it: `API key`,
/// `?key=`.
pub(super) fn is_sure_behind(before: &[u8], word: &[u8]) -> bool {
    let key = word.eq_ignore_ascii_case(b"key");
    let last = before.len().saturating_sub("private ".len());
    let kinds = [&b"api "[..], b"access ", b"secret ", b"private "];
    let kind = || {
        let last = before[last..].to_ascii_lowercase();
        kinds.iter().any(|kind| last.ends_with(kind))
    };
    key && (matches!(before.last(), Some(b'?' | b'&')) || kind())
}

/// Whether it may be a secret that somebody has chosen.
pub(super) fn is_chosen(text: &[u8]) -> bool {
    let digits = text.iter().any(u8::is_ascii_digit);
    text.len() >= CHOSEN && digits && text.iter().any(u8::is_ascii_alphabetic)
}

/// Whether it is one, behind a sure name: no path, member or call is, and, unless the name is
/// `placed` where nothing but values follow, no words are.
pub(super) fn is_meant(text: &[u8], own: &Range<usize>, judged: &[u8], placed: bool) -> bool {
    let code = matches!(text.get(own.end), Some(b'(' | b'['))
        || memchr::memchr2(b'.', b'/', judged).is_some();
    !code && is_chosen(judged) && (placed || !reads_as_words(judged))
}

/// Whether a name is that of a value in a URL's query (`?token=`), of a long option (`--token=`) or
/// of a header (`X-Api-Key:`).
pub(super) fn is_placed(text: &[u8], name: &Range<usize>) -> bool {
    let whole = &text[name.clone()];
    let queried = matches!(text[..name.start].last(), Some(b'?' | b'&'));
    match text.get(name.end) {
        Some(b'=') => queried || whole.starts_with(b"--"),
        Some(b':') => whole.starts_with(b"X-") || whole.starts_with(b"x-"),
        _ => false,
    }
}

/// What is put into a variable whose name is in capitals and leaves no doubt. `name` goes from its
/// beginning to the equals sign.
pub(super) fn put(
    text: &[u8],
    name: Range<usize>,
    begun: bool,
    last: &mut Range<usize>,
) -> Option<Range<usize>> {
    let whole = &text[name.clone()];
    let is_variable = text.get(name.end) == Some(&b'=')
        && !whole.starts_with(b"-")
        && !whole.iter().any(u8::is_ascii_lowercase)
        && is_sure(whole);
    if !is_variable {
        return None;
    }
    let own = value(text, name.end + 1, last)?;
    let word = &text[own.clone()];
    let open = begun && own.end == text.len();
    let code = matches!(text.get(own.end), Some(b'(' | b'['))
        || word.iter().any(|byte| b"./:@".contains(byte))
        || word.ends_with(b"_")
        || is_name(word);
    let enough = open || word.len() >= VARIABLE;
    (enough && !code && !word.iter().all(u8::is_ascii_digit)).then_some(own)
}

/// Whether that is the name of a variable itself.
fn is_name(word: &[u8]) -> bool {
    let part = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_';
    word.iter().all(part)
}

/// Where a name begins of which a word begins at `at`.
pub(super) fn name_start(text: &[u8], at: usize) -> usize {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let start = at - text[..at].iter().rev().take(24).take_while(part).count();
    // The letter of a line break that is escaped is none of its.
    let escaped = start < at && text[..start].ends_with(b"\\");
    start + usize::from(escaped && b"nrt".contains(&text[start]))
}

/// Whether what stands before the word `password` makes what follows a blank one: `machine x login
/// y password z`, as in a `.netrc`.
pub(super) fn logs_in(before: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(BEFORE)..];
    let says = |word: &[u8]| memchr::memmem::find(near, word).is_some();
    before
        .last()
        .is_none_or(|byte| !byte.is_ascii_alphanumeric())
        && (says(b"login ") || says(b"machine "))
}
