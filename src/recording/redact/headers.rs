//! Finds credentials in the text of headers: in `Authorization`, after a scheme, in cookies.
//!
//! See `walk` for headers that are members or elements of JSON.

use std::ops::Range;

use super::escapes::{begins_word, skip_gap};
use super::random::{MAX_JUDGED, is_random, is_random_so_far, reads_as_words};
use super::runs::Runs;

/// Minimum length of a credential after a scheme, and of a cookie's value.
const MIN_LEN: usize = 8;

/// Limit of the protocols in an offer that are judged.
const MAX_PROTOCOLS: usize = 4;

/// Limit of the length of a scheme.
const MAX_SCHEME: usize = 32;

/// The credential after a scheme such as `earer`.
pub(super) fn after_scheme(
    text: &[u8],
    runs: &mut Runs<'_>,
    at: Range<usize>,
) -> Option<Range<usize>> {
    let own = runs.rest_from(skip_blanks(text, at.end));
    // `Bearer`, `bearer` and `BEARER`.
    let start = at.start.checked_sub(1)?;
    let named = matches!(text[start], b'B' | b'b') && begins_word(text, start);
    // `a basic understanding` is no credential, but after the header's name everything is.
    let header = memchr::memmem::find(&text[start.saturating_sub(24)..start], b"uthorization");
    let is_one = header.is_some() || !reads_as_words(head(text, &own));
    let apart = own.start > at.end;
    (apart && own.len() >= MIN_LEN && named && is_one).then_some(own)
}

/// The random credential after a header name in which `uthoriz` ends at `from`: with another scheme
/// or without one.
pub(super) fn authorization(
    text: &[u8],
    runs: &mut Runs<'_>,
    from: usize,
    partial: bool,
) -> Option<Range<usize>> {
    let tail = text.get(from..from + 5)?;
    if !tail.eq_ignore_ascii_case(b"ation") {
        return None;
    }
    let start = skip_gap(text, from + 5);
    let first = runs.rest_from(start);
    let is_one = |own: &Range<usize>| {
        let begins = partial && own.end == text.len();
        let own = head(text, own);
        (is_random(own) || begins && is_random_so_far(own)) && !reads_as_words(own)
    };
    if start == from + 5 || first.is_empty() {
        return None;
    }
    if first.len() <= MAX_SCHEME {
        let next = skip_blanks(text, first.end);
        if next > first.end
            && let second = runs.rest_from(next)
            && is_one(&second)
        {
            return Some(second);
        }
    }
    let scheme = [&b"AWS4-"[..], b"SCRAM-"];
    let is_scheme = scheme
        .iter()
        .any(|scheme| text[start..].starts_with(scheme));
    (!is_scheme && is_one(&first)).then_some(first)
}

/// The token in a `Sec-WebSocket-Protocol` header whose name ends at `from`.
pub(super) fn protocol(text: &[u8], runs: &mut Runs<'_>, from: usize) -> Option<Range<usize>> {
    let mut at = skip_gap(text, from);
    for _ in 0..MAX_PROTOCOLS {
        let own = runs.rest_from(at);
        let value = head(text, &own);
        if is_random(value) && !reads_as_words(value) {
            return Some(own);
        }
        let more = text[own.end..].strip_prefix(b",")?;
        at = own.end + 1 + usize::from(more.starts_with(b" "));
    }
    None
}

/// The values of a cookie header whose name ends at `from`, and the end of the header.
pub(super) fn cookies(text: &[u8], from: usize) -> Option<(Option<Range<usize>>, usize)> {
    let start = skip_gap(text, from);
    let named = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let name = text[start..].iter().take(64).take_while(named).count();
    if start == from || name == 0 || text.get(start + name) != Some(&b'=') {
        return None;
    }
    let own = start + name + 1;
    let length = text[own..].iter().position(ends_cookies);
    let end = length.map_or(text.len(), |length| own + length);
    let is_secret = |value: &[u8]| {
        value.len() >= MIN_LEN && !reads_as_words(&value[..value.len().min(MAX_JUDGED)])
    };
    let mut values = text[own..end].split(|byte| *byte == b';');
    // The attributes of a cookie are not secret (RFC 6265, 4.1).
    let others = |pair: &[u8]| {
        let pair = pair.trim_ascii_start();
        let equals = memchr::memchr(b'=', pair);
        equals.is_some_and(|at| {
            let of_all = [&b"max-age"[..], b"expires", b"path", b"domain", b"samesite"];
            let name = pair[..at].to_ascii_lowercase();
            !of_all.contains(&&name[..]) && is_secret(&pair[at + 1..])
        })
    };
    let is_one = values.next().is_some_and(is_secret) || values.any(others);
    Some((is_one.then_some(own..end), end))
}

/// Whether a byte ends a cookie header.
pub(super) fn ends_cookies(byte: &u8) -> bool {
    *byte < b' ' || !byte.is_ascii() || b"\"'\\`<>".contains(byte)
}

/// Skips blanks, escaped or not.
fn skip_blanks(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < from + 8 {
        at += match &text[at..] {
            [b' ' | b'\t', ..] => 1,
            [b'\\', b't', ..] => 2,
            // JSON in a JSON string.
            [b'\\', b'\\', ..] => 1,
            _ => break,
        };
    }
    at
}

/// The part of it that is judged.
fn head<'a>(text: &'a [u8], own: &Range<usize>) -> &'a [u8] {
    &text[own.start..own.end.min(own.start + MAX_JUDGED)]
}
