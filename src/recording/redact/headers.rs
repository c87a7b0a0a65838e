//! Finds credentials in the text of headers: in `Authorization`, after a scheme, in cookies.
//!
//! See `walk` for headers that are members or elements of JSON.

use std::ops::Range;

use super::escapes::{begins_word, skip_gap};
use super::random::{is_random, reads_as_words};
use super::runs::{MAX_JUDGED, Run, Scan};

/// Minimum length of a credential after a scheme, and of a cookie's value.
const MIN_LEN: usize = 8;

/// Limit of the protocols in an offer that are judged.
const MAX_PROTOCOLS: usize = 4;

/// Limit of the length of a scheme.
const MAX_SCHEME: usize = 32;

impl Scan<'_> {
    /// The credential after a scheme such as `Bearer`.
    pub(super) fn after_scheme(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let own = self.run(skip_blanks(text, at.end));
        // `a basic understanding` is no credential, but after the header's name everything is.
        let before = &text[at.start.saturating_sub(24)..at.start];
        let header = memchr::memmem::find(before, b"uthorization");
        let is_one = header.is_some() || !own.reads_as_words();
        let apart = own.at.start > at.end && begins_word(text, at.start);
        (apart && own.at.len() >= MIN_LEN && is_one).then_some(own.at)
    }

    /// The random credential after a header name in which `uthoriz` ends at `from`: with another
    /// scheme or without one.
    pub(super) fn authorization(&mut self, from: usize) -> Option<Range<usize>> {
        let tail = self.text.get(from..from + 5)?;
        let start = skip_gap(self.text, from + 5);
        let first = self.run(start);
        if !tail.eq_ignore_ascii_case(b"ation") || start == from + 5 || first.at.is_empty() {
            return None;
        }
        let is_one = |own: &Run<'_>| own.is_random() && !own.reads_as_words();
        let next = skip_blanks(self.text, first.at.end);
        if first.at.len() <= MAX_SCHEME && next > first.at.end {
            let second = self.run(next);
            if is_one(&second) {
                return Some(second.at);
            }
        }
        let schemes = [&b"AWS4-"[..], b"SCRAM-"];
        let is_scheme = schemes.iter().any(|scheme| first.head.starts_with(scheme));
        (!is_scheme && is_one(&first)).then_some(first.at)
    }

    /// The token in a `Sec-WebSocket-Protocol` header whose name ends at `from`.
    pub(super) fn protocol(&mut self, from: usize) -> Option<Range<usize>> {
        let mut at = skip_gap(self.text, from);
        for _ in 0..MAX_PROTOCOLS {
            let own = self.run(at);
            if is_random(own.head) && !own.reads_as_words() {
                return Some(own.at);
            }
            if own.at.len() > MAX_JUDGED {
                return None;
            }
            let more = self.text[own.at.end..].strip_prefix(b",")?;
            at = own.at.end + 1 + usize::from(more.starts_with(b" "));
        }
        None
    }
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
