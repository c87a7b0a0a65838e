//! Absolute paths as text, of this machine or another: POSIX, Windows drives, UNC, `file://` URIs.
//!
//! `std::path` only knows the paths of the machine it runs on.

use std::borrow::Cow;

use percent_encoding::{percent_decode_str, utf8_percent_encode};

use dialect::PATH_SEGMENT;

/// The syntax of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `/home/me`
    Posix,
    /// `C:\Users\me`, `\\server\share\me`
    Windows,
}

/// An absolute path in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path<'a> {
    pub(super) style: Style,
    /// From the root down. On Windows the first is a drive, `C:`, or two are a share, of which the
    /// first is `\\server`.
    pub(super) names: Vec<Name<'a>>,
    /// It ends with a separator.
    pub(super) trailing_separator: bool,
    /// Of a `file://` URI, what follows the path in it.
    uri_tail: Option<&'a str>,
}

/// A name in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// Its decoded form.
    pub(super) plain: Cow<'a, str>,
    /// Its original spelling.
    raw: &'a str,
}

impl<'a> Path<'a> {
    /// Splits an absolute path or a `file://` URI; `None` for any other text.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_at_checked(5).unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("file:") {
            return Self::of_plain(text);
        }
        match rest.strip_prefix("//") {
            Some(rest) => Self::of_uri(rest),
            // Without an authority there may be no slashes for one (RFC 8089, section 2).
            None if rest.starts_with('/') => Self::of_uri(rest),
            None => None,
        }
    }

    fn of_plain(text: &'a str) -> Option<Self> {
        let plain = |raw: &'a str| Name {
            plain: Cow::Borrowed(raw),
            raw,
        };
        let share = |text: &'a str| text.strip_prefix(r"\\");
        let (style, text, server) = if let Some(rest) = text.strip_prefix(r"\\?\") {
            // The same path, without a limit on its length.
            match rest.split_at_checked(4) {
                Some((unc, rest)) if unc.eq_ignore_ascii_case(r"UNC\") => {
                    (Style::Windows, rest, Some(rest))
                }
                _ => (Style::Windows, rest, share(rest)),
            }
        } else if text.starts_with(r"\\") || has_drive(text) {
            (Style::Windows, text, share(text))
        } else if text.starts_with('/') {
            (Style::Posix, text, None)
        } else {
            return None;
        };
        let separates = |c: char| c == '/' || c == '\\' && style == Style::Windows;
        let mut names: Vec<_> = split(text, separates).map(plain).collect();
        if let Some(server) = server {
            let server = server.split(separates).next().unwrap_or_default();
            names.first_mut()?.plain = Cow::Owned(format!(r"\\{server}"));
        }
        Some(Self {
            style,
            names,
            trailing_separator: text.ends_with(separates),
            uri_tail: None,
        })
    }

    fn of_uri(text: &'a str) -> Option<Self> {
        let end = text.find(['?', '#']).unwrap_or(text.len());
        let (text, tail) = text.split_at(end);
        let (host, path) = text.split_at(text.find('/')?);
        let mut names = Vec::new();
        for raw in split(path, |c| c == '/') {
            names.push(Name {
                plain: decode(raw)?,
                raw,
            });
        }
        let drive = names.first().is_some_and(|name| has_drive(&name.plain));
        let mut style = if drive { Style::Windows } else { Style::Posix };
        if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
            style = Style::Windows;
            names.insert(
                0,
                Name {
                    plain: Cow::Owned(format!(r"\\{host}")),
                    raw: host,
                },
            );
        }
        Some(Self {
            style,
            names,
            trailing_separator: path.ends_with('/'),
            uri_tail: Some(tail),
        })
    }

    /// Whether it is `other` or inside of it.
    pub(super) fn is_within(&self, other: &Path<'_>) -> bool {
        let same = |(one, two): (&Name<'_>, &Name<'_>)| match self.style {
            Style::Posix => one.plain == two.plain,
            Style::Windows => one.plain.to_lowercase() == two.plain.to_lowercase(),
        };
        self.style == other.style
            && self.names.len() >= other.names.len()
            && self.names.iter().zip(&other.names).all(same)
    }

    /// Whether its `..` lead above its first `depth` names.
    pub(super) fn escapes(&self, depth: usize) -> bool {
        let mut level = 0_usize;
        for name in &self.names[depth..] {
            level = match &*name.plain {
                ".." if level == 0 => return true,
                ".." => level - 1,
                // Encoded in a URI.
                "." => level,
                _ => level + 1,
            };
        }
        false
    }

    /// The same path with `to` in the place of its first `depth` names, in the original form;
    /// `None` where one of its names is not valid there.
    pub(super) fn relocated(&self, depth: usize, to: &Path<'_>) -> Option<String> {
        let rest = &self.names[depth..];
        if to.style == Style::Windows && rest.iter().any(|name| !is_windows_name(&name.plain)) {
            return None;
        }
        let (mut text, separator) = match (self.uri_tail, to.style) {
            (Some(_), _) => (to.uri(), '/'),
            (None, Style::Posix) => (to.plain(), '/'),
            (None, Style::Windows) => (to.plain(), '\\'),
        };
        for name in rest {
            if !text.ends_with(separator) {
                text.push(separator);
            }
            text.push_str(name.raw);
        }
        if self.trailing_separator && !text.ends_with(separator) {
            text.push(separator);
        }
        text.push_str(self.uri_tail.unwrap_or_default());
        Some(text)
    }

    /// As a path.
    fn plain(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(|name| &*name.plain).collect();
        match self.style {
            Style::Posix => format!("/{}", names.join("/")),
            Style::Windows if names.len() == 1 => format!(r"{}\", names[0]),
            Style::Windows => names.join(r"\"),
        }
    }

    /// As a URI (RFC 8089).
    fn uri(&self) -> String {
        let mut text = String::from("file://");
        for name in &self.names {
            match name.plain.strip_prefix(r"\\") {
                Some(server) => text.push_str(server),
                None => {
                    text.push('/');
                    text.extend(utf8_percent_encode(&name.plain, &PATH_SEGMENT));
                }
            }
        }
        if self.names.is_empty() || self.style == Style::Windows && self.names.len() == 1 {
            text.push('/');
        }
        text
    }
}

/// The names in a path, without `.`.
fn split(text: &str, by: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    text.split(by)
        .filter(|name| !name.is_empty() && *name != ".")
}

/// Whether a path begins with a drive.
fn has_drive(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.next() == Some(b':')
        && bytes
            .next()
            .is_none_or(|byte| byte == b'\\' || byte == b'/')
}

/// Whether a POSIX name can be used in a Windows path with the same meaning.
fn is_windows_name(name: &str) -> bool {
    !name.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|', '\0'])
}

/// Percent-decoding (RFC 3986, section 2.1); `None` when the result is not a name in UTF-8.
fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let mut escapes = raw.split('%').skip(1).peekable();
    let is_encoded = escapes.peek().is_some();
    let is_byte = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !escapes.all(is_byte) {
        return None;
    }
    let plain = percent_decode_str(raw).decode_utf8().ok()?;
    // An encoded separator is not a separator, but would be one in a path.
    (!is_encoded || !plain.contains(['/', '\\', '\0'])).then_some(plain)
}
