//! Secrets that are too short to look random, or that somebody has thought up, behind a name that
//! leaves no doubt: `GITHUB_TOKEN=…`, `api_key: …`, `<password>…`, `login me password …`.
//!
//! Not here: what looks random behind any telling name (see `shapes`), passwords in command lines
//! (see `commands`).

use std::ops::Range;
use std::sync::LazyLock;

use super::commands::{is_nothing, value};
use super::escapes::quotes;
use super::names::{begins_part, is_secret_member};
use super::random::{is_random, reads_as_words};
use super::runs;
use super::table::{List, has, rows, words};

/// Fewest characters of a secret that somebody has chosen.
const CHOSEN: usize = 8;

/// Fewest characters of what is put into a variable.
const VARIABLE: usize = 6;

/// Bytes before a name that are looked at.
const BEFORE: usize = 96;

/// How names end, without dashes and in lower case, that nothing but a secret has.
static SURE: List = LazyLock::new(|| words(include_str!("tables/sure.txt")));

/// How the names of members end that hold a secret when it looks like one, and what it looks like.
static HELD: LazyLock<Vec<[&str; 2]>> =
    LazyLock::new(|| rows(include_str!("tables/held.txt")).collect());

/// Whether a name, with all that it is put together with, is one that only a secret has.
pub(super) fn is_sure(name: &[u8]) -> bool {
    let plain = plain(name);
    SURE.iter().any(|end| plain.ends_with(end.as_bytes())) || is_short(name)
}

/// Whether a member has a short name for a secret, as in the settings of Docker and of mailers.
pub(super) fn is_short(name: &[u8]) -> bool {
    [&b"auth"[..], b"pass"].contains(&name)
}

/// Whether a name ends as those of members do that may hold a secret.
pub(super) fn may_hold(name: &[u8]) -> bool {
    looks(name).is_some()
}

/// Whether what a member with such a name holds, or follows one in a text, is a secret.
pub(super) fn is_held(name: &[u8], text: &[u8]) -> bool {
    let digits = text.iter().any(u8::is_ascii_digit);
    let code = text.iter().any(|byte| b" \t\n(){}<>".contains(byte))
        || text.first().is_none_or(|byte| b"$%*/~.\\".contains(byte))
        || text.get(1) == Some(&b':');
    match looks(name) {
        None => false,
        Some("connection") => memchr::memchr2(b'=', b'@', text).is_some(),
        Some(_) if code => false,
        Some("code") => digits,
        // Alone, it names the folder at hand, too.
        Some("pwd") if name.len() > 3 => true,
        Some("pwd" | "password") => digits || !reads_as_words(text),
        Some(_) => runs::end(text, 0) == text.len() && is_key(text),
    }
}

/// What stands where nothing but a value does, named for a password: in an attribute or an element
/// of XML, an entry of a connection string or of a query, a constant that is defined.
pub(super) fn framed(
    text: &[u8],
    name: Range<usize>,
    begun: bool,
    last: &mut Range<usize>,
) -> Option<Range<usize>> {
    let whole = &text[name.clone()];
    let chosen = matches!(looks(whole), Some("pwd" | "password"));
    if !chosen && !is_sure(whole) {
        return None;
    }
    let before = &text[name.start.saturating_sub(BEFORE)..name.start];
    let quotes = quotes(text, name.end);
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
    let sign = match rest {
        [b'>', ..] if tag && quotes == 0 => 1,
        [b'=', b'"' | b'\'' | b'\\', ..] if tag && quotes == 0 => 1,
        [b'=', ..] if listed && quotes == 0 => 1,
        [b',', b' ', ..] if quotes > 0 && defined() => 2,
        [b',', ..] if quotes > 0 && defined() => 1,
        _ if quotes > 0 && tag && rest.starts_with(b" value=") => 7,
        _ => return None,
    };
    let own = value(text, name.end + quotes + sign, last)?;
    let word = &text[own.clone()];
    let open = begun && own.end == text.len();
    let element = rest[0] == b'>' && !open && !text[own.end..].starts_with(b"<");
    let code = matches!(text.get(own.end), Some(b'(' | b'[' | b')'))
        || matches!(word, [b'/' | b'~' | b'.', ..])
        || word.contains(&b'.') && reads_as_words(word);
    let is_none = is_nothing(word, false) || has(&["required", "string", "password"], word, false);
    (!element && !code && !is_none && (chosen || is_key(word))).then_some(own)
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

/// Whether it is that or random, and is not made of words.
pub(super) fn is_key(text: &[u8]) -> bool {
    (is_random(text) || is_chosen(text)) && !reads_as_words(text)
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
        // The name of a variable itself.
        || word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let enough = open || word.len() >= VARIABLE;
    (enough && !code && !word.iter().all(u8::is_ascii_digit)).then_some(own)
}

/// What it looks like that a member with such a name may hold.
fn looks(name: &[u8]) -> Option<&'static str> {
    let own = std::str::from_utf8(name).ok()?;
    let plain = plain(name);
    let held = HELD.iter().find(|[end, _]| plain.ends_with(end.as_bytes()));
    let [end, looks] = held?;
    let alone = plain == end.as_bytes() || begins_part(own, name.len().checked_sub(end.len())?);
    // Others end as the shortest ones do, such as `compat`.
    (alone || end.len() > 3 || *end == "pwd").then_some(looks)
}

/// A name without dashes and in lower case.
fn plain(name: &[u8]) -> Vec<u8> {
    let letters = name.iter().filter(|byte| !b"-_".contains(byte));
    letters.map(u8::to_ascii_lowercase).collect()
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
