//! Secrets in URLs: users and passwords, and signatures that let whoever has the URL in.
//!
//! Not here: tokens and keys in queries, which have a telling name like those elsewhere (see
//! `shapes`).

use std::ops::Range;

use super::random::{LONG, has_begun, is_random, reads_as_words};
use super::runs::Runs;

/// Whether the user and the host of a URL have ended before this, at the latest.
pub(super) fn ends_host(byte: &u8) -> bool {
    matches!(
        byte,
        b'/' | b'?' | b' ' | b'\t' | b'\n' | b'"' | b'\\' | b'<' | b'>'
    )
}

/// The user, with a password or instead of one, of a URL whose scheme ends at `start`.
pub(super) fn user(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let host = &rest[..rest.iter().position(ends_host).unwrap_or(rest.len())];
    // A quote or a fragment ends it, too, but both are found in passwords.
    let quoted = host.iter().position(|byte| b"'#".contains(byte));
    let within = |end: usize| memchr::memrchr(b'@', &host[..end]);
    let user = match quoted.map(|quoted| (quoted, within(quoted))) {
        None => within(host.len())?,
        Some((_, Some(user))) => user,
        Some((quoted, None)) if goes_on(&host[..quoted]) => within(host.len())?,
        Some(_) => return None,
    };
    // `git@host`, but a name alone may be a token.
    let known = user < 16 && host[..user].iter().all(u8::is_ascii_lowercase);
    let is_one = user > 0 && !known && !is_pattern(&host[..user]);
    is_one.then_some(start..start + user)
}

/// Whether what stands before the `@` is a regular expression that is meant for users: no user
/// begins with a class, a group or any character at all, and hardly a password with one that has
/// not an end of its own.
fn is_pattern(user: &[u8]) -> bool {
    let any = |text: &[u8]| text.starts_with(b".*") || text.starts_with(b".+");
    let class = |text: &[u8]| text.starts_with(b"[^") || any(text);
    let group = |text: &[u8]| {
        let within = text.strip_prefix(b"(").unwrap_or_default();
        within.starts_with(b"?") || class(within)
    };
    let password = memchr::memchr(b':', user).map(|colon| &user[colon + 1..]);
    let named = matches!(user.first(), Some(b'[' | b'(')) || any(user);
    named || password.is_some_and(|password| class(password) || group(password))
}

/// Where the user or the host begins in whose midst a text ends.
pub(super) fn open_host(text: &[u8]) -> Option<usize> {
    let back = text.iter().rposition(ends_host);
    let start = back.map_or(0, |back| back + 1);
    let before = &text[..start];
    (before.ends_with(b"://") || before.ends_with(b":\\/\\/")).then_some(start)
}

/// Whether the host of a URL, in whose midst a text ends, is a user, for it has a password or is
/// too random for a name.
pub(super) fn begun_user(host: &[u8]) -> bool {
    if is_pattern(host) {
        return false;
    }
    let Some(colon) = memchr::memchr(b':', host) else {
        return memchr::memchr(b'.', host).is_none() && has_begun(host);
    };
    let password = &host[colon + 1..];
    let digits = password.iter().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    let next = password.get(digits);
    let port = matches!(digits, 1..=5) && !next.is_some_and(u8::is_ascii_alphanumeric);
    let named = password.first().is_some_and(|byte| b"$[{<%".contains(byte));
    let enough = match reads_as_words(password) {
        true => 12,
        false => 8,
    };
    colon > 0 && !host.starts_with(b"[") && !port && !named && password.len() >= enough
}

/// Whether a password has begun there: behind a host stands a port, or nothing.
fn goes_on(host: &[u8]) -> bool {
    memchr::memchr(b':', host).is_some_and(|colon| colon > 0 && !is_port(&host[colon + 1..]))
}

fn is_port(text: &[u8]) -> bool {
    !text.is_empty() && text.len() <= 5 && text.iter().all(u8::is_ascii_digit)
}

/// Whether it may be a code for a token, and is not that of a fault or a country.
fn is_code(text: &[u8]) -> bool {
    let digits = text.iter().any(u8::is_ascii_digit);
    text.len() >= 10 && digits && text.iter().any(u8::is_ascii_alphabetic)
}

/// The signature behind `sig=`, or a name that ends in `ure=`, or the code behind `code=`, in the
/// query of a URL.
pub(super) fn signature(
    text: &[u8],
    runs: &mut Runs<'_>,
    at: Range<usize>,
    begun: bool,
) -> Option<Range<usize>> {
    let named = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let name = &text[..at.end - 1];
    let length = name.iter().rev().take(32).take_while(named).count();
    let (before, name) = name.split_at(name.len() - length);
    // As some spell the ampersand.
    let (before, name) = match name.strip_prefix(b"u0026") {
        Some(name) if before.ends_with(b"\\") => (&b"&"[..], name),
        _ => (before, name),
    };
    let ends = name
        .len()
        .checked_sub("signature".len())
        .map(|from| &name[from..]);
    let signs = name.eq_ignore_ascii_case(b"sig")
        || ends.is_some_and(|ends| ends.eq_ignore_ascii_case(b"signature"));
    let queried = before.ends_with(b"?") || before.ends_with(b"&") || before.ends_with(b"&amp;");
    let exchanged = name == b"code" || name.ends_with(b"_code");
    if !(signs || exchanged) || !queried {
        return None;
    }
    let own = runs.from(at.end);
    let judged = &text[own.start..own.end.min(own.start + LONG)];
    let begins = begun && own.end == text.len() && has_begun(judged);
    let code = exchanged && is_code(judged);
    ((is_random(judged) || begins || code) && !reads_as_words(judged)).then_some(own)
}
