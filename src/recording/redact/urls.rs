//! Finds secrets in URLs: user info, signatures, webhook paths.
//!
//! Tokens and keys in queries have a suggestive name and are found by `named`.

use std::ops::Range;

use super::names::{may_be_password, name_start};
use super::random::{is_random, is_random_so_far, reads_as_words};
use super::runs::Scan;

/// Minimum length of an authorization code: error and country codes are shorter.
const MIN_CODE: usize = 10;

/// Whether a byte ends the user info and host of a URL.
pub(super) fn ends_host(byte: &u8) -> bool {
    matches!(
        byte,
        b'/' | b'?' | b' ' | b'\t' | b'\n' | b'"' | b'\\' | b'<' | b'>'
    )
}

impl Scan<'_> {
    /// The user info of a URL whose scheme ends at `start`.
    pub(super) fn user(&self, start: usize) -> Option<Range<usize>> {
        let rest = &self.text[start..];
        let host = &rest[..rest.iter().position(ends_host).unwrap_or(rest.len())];
        // A quote or a fragment also ends it, but both occur in passwords.
        let quoted = host.iter().position(|byte| b"'#".contains(byte));
        let within = |end: usize| memchr::memrchr(b'@', &host[..end]);
        let user = match quoted.map(|quoted| (quoted, within(quoted))) {
            None => within(host.len())?,
            Some((_, Some(user))) => user,
            Some((quoted, None)) if has_password(&host[..quoted]) => within(host.len())?,
            Some(_) => return None,
        };
        // Not `git@host`; but a name alone may be a token.
        let known = user < 16 && host[..user].iter().all(u8::is_ascii_lowercase);
        let is_one = user > 0 && !known && !is_pattern(&host[..user]);
        is_one.then_some(start..start + user)
    }

    /// The signature after `sig=` or a name that ends in `ature`, or the code after `code=`, in the
    /// query of a URL.
    pub(super) fn signature(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let equals = at.end - usize::from(text[..at.end].ends_with(b"="));
        if text.get(equals) != Some(&b'=') {
            return None;
        }
        let (before, name) = text[..equals].split_at(name_start(text, equals));
        // An escaped ampersand.
        let (before, name) = match name.strip_prefix(b"u0026") {
            Some(name) if before.ends_with(b"\\") => (&b"&"[..], name),
            _ => (before, name),
        };
        let lower = name.to_ascii_lowercase();
        let is_signature = lower == b"sig" || lower.ends_with(b"signature");
        let queried = [&b"?"[..], b"&", b"&amp;"]
            .iter()
            .any(|sign| before.ends_with(sign));
        let exchanged = name == b"code" || name.ends_with(b"_code");
        if !(is_signature || exchanged) || !queried {
            return None;
        }
        let own = self.run(equals + 1);
        let code = exchanged && own.at.len() >= MIN_CODE && may_be_password(own.head);
        ((own.is_random() || code) && !own.reads_as_words()).then_some(own.at)
    }

    /// The secret path of a webhook; the `hook` in its name or in that of its host ends at `from`.
    pub(super) fn webhook(&mut self, from: usize) -> Option<Range<usize>> {
        let host = self.run(from);
        let slash = memchr::memchr(b'/', host.head)?;
        let own = self.run(from + slash + 1);
        let mut parts = own.head.split(|byte| b"/\\%".contains(byte));
        let named = [&b"s.slack."[..], b"s.zapier.", b".office", b"b2/"];
        let known = named.iter().any(|name| host.head.starts_with(name));
        let is_one = parts.any(|part| {
            !reads_as_words(part) && (is_random(part) || own.open && is_random_so_far(part))
        });
        let short = known && own.head.iter().filter(|byte| byte.is_ascii_digit()).count() >= 3;
        (is_one || short).then_some(own.at)
    }
}

/// Whether the text before the `@` is a regular expression for user info: no user begins with a
/// class, a group or a wildcard, and hardly any password with one that is not closed.
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

/// The start of the user info or host in which a text ends.
pub(super) fn open_host(text: &[u8]) -> Option<usize> {
    let back = text.iter().rposition(ends_host);
    let start = back.map_or(0, |back| back + 1);
    let before = &text[..start];
    (before.ends_with(b"://") || before.ends_with(b":\\/\\/")).then_some(start)
}

/// Whether an incomplete host is user info: it has a password or is too random for a name.
pub(super) fn is_partial_user(host: &[u8]) -> bool {
    if is_pattern(host) {
        return false;
    }
    let Some(colon) = memchr::memchr(b':', host) else {
        return memchr::memchr(b'.', host).is_none() && is_random_so_far(host);
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

/// Whether a host is user info with a password, and not a host with a port.
fn has_password(host: &[u8]) -> bool {
    memchr::memchr(b':', host).is_some_and(|colon| colon > 0 && !is_port(&host[colon + 1..]))
}

fn is_port(text: &[u8]) -> bool {
    !text.is_empty() && text.len() <= 5 && text.iter().all(u8::is_ascii_digit)
}
