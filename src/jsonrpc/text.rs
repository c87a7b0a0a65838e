//! A cursor over JSON text that is known to be valid: it locates parts and builds no values.
//!
//! `scan` or `is_json` has validated the text. Invalid text yields wrong slices, never a panic.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

/// The members of an object: raw names without their quotes, raw values.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    text: &'a [u8],
    at: usize,
}

/// The members of the object that `text` is; none when it is not an object.
#[must_use]
pub fn members(text: &[u8]) -> Members<'_> {
    let at = inside(text, b'{');
    Members { text, at }
}

/// The elements of the array that `text` is; none when it is not an array.
#[must_use]
pub fn items(text: &[u8]) -> Items<'_> {
    let at = inside(text, b'[');
    Items { text, at }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let start = separator(self.text, self.at);
        if self.text.get(start) != Some(&b'"') {
            return None;
        }
        let end = string_end(self.text, start);
        let colon = space(self.text, end);
        let from = space(self.text, colon + 1);
        let to = value_end(self.text, from);
        self.at = to;
        let value = self.text.get(from..to).filter(|value| !value.is_empty())?;
        Some((self.text.get(start + 1..end - 1)?, value))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let from = separator(self.text, self.at);
        if matches!(self.text.get(from), None | Some(b']')) {
            return None;
        }
        let to = value_end(self.text, from);
        self.at = to;
        self.text.get(from..to)
    }
}

/// The position after the bracket that `text` begins with; its end when it begins otherwise.
fn inside(text: &[u8], bracket: u8) -> usize {
    let at = space(text, 0);
    if text.get(at) == Some(&bracket) {
        at + 1
    } else {
        text.len()
    }
}

/// Skips white space.
fn space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Skips white space and one comma.
fn separator(text: &[u8], at: usize) -> usize {
    let at = space(text, at);
    match text.get(at) {
        Some(b',') => space(text, at + 1),
        _ => at,
    }
}

/// The position after the string that starts at `at`.
#[must_use]
pub fn string_end(text: &[u8], at: usize) -> usize {
    let content = text.get(at + 1..).unwrap_or_default();
    // Texts have few quotes and many other escapes, so only what precedes a quote is looked at.
    let is_end = |quote: &usize| {
        let before = content[..*quote].iter().rev();
        before.take_while(|byte| **byte == b'\\').count() % 2 == 0
    };
    let end = memchr::memchr_iter(b'"', content).find(is_end);
    end.map_or(text.len(), |end| at + end + 2)
}

/// The position after the value that starts at `start`.
fn value_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    match text.get(at) {
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            while let Some(byte) = text.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(text, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            text.len()
        }
        Some(_) => {
            while let Some(byte) = text.get(at) {
                if matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
                    break;
                }
                at += 1;
            }
            // At least one byte is consumed, so that iteration ends.
            at.max(start + 1)
        }
        None => text.len(),
    }
}

/// Whether a raw name (without quotes) is `plain`.
#[inline]
#[must_use]
pub fn same_name(raw: &[u8], plain: &str) -> bool {
    match raw.len().cmp(&plain.len()) {
        Ordering::Less => false,
        Ordering::Equal => raw == plain.as_bytes() && !raw.contains(&b'\\'),
        // Every escape is longer than the character, and escapes in names are rare.
        Ordering::Greater => {
            (raw[0] == b'\\' || plain.as_bytes().first() == Some(&raw[0]))
                && is_escaped_form(raw, plain)
        }
    }
}

/// Whether a reader that ignores case may take a raw name for `plain`. Besides ASCII, four letters
/// have one of ASCII as another case.
#[must_use]
pub fn same_ignoring_case(raw: &[u8], plain: &str) -> bool {
    let fold = |letter| match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        'ı' | 'İ' => 'i',
        letter => letter.to_ascii_lowercase(),
    };
    unescape(raw).is_some_and(|name| name.chars().map(fold).eq(plain.chars().map(fold)))
}

/// Whether `raw` is `plain` written with escapes.
#[inline(never)]
fn is_escaped_form(raw: &[u8], plain: &str) -> bool {
    let mut both = raw.iter().zip(plain.as_bytes());
    let differs = |(one, other): &(&u8, &u8)| **one == b'\\' || one != other;
    let begins = both.find(differs).is_some_and(|(byte, _)| *byte == b'\\');
    begins && unescape(raw).is_some_and(|name| name == plain)
}

/// The text of a raw string without its quotes; `None` when it contains half a surrogate pair.
#[must_use]
pub fn unescape(raw: &[u8]) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', raw).is_none() {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice::<String>(&quoted)
        .ok()
        .map(Cow::Owned)
}

/// The text of a JSON string, quotes included; `None` for other values.
#[must_use]
pub fn string(raw: &[u8]) -> Option<Cow<'_, str>> {
    unescape(raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// [`unescape`], which replaces what has no text.
pub fn unescaped(raw: &[u8]) -> Cow<'_, str> {
    unescape(raw).unwrap_or_else(|| String::from_utf8_lossy(raw))
}

/// The value of the member with that name, as spelled; `None` when `object` is not an object or has
/// no such member. The last one counts, as it does for most readers.
#[must_use]
pub fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    member_range(object, name).map(|place| &object[place])
}

/// Where that value is.
#[must_use]
pub fn member_range(object: &[u8], name: &str) -> Option<Range<usize>> {
    let mut members = members(object);
    let mut found = None;
    while let Some((raw, value)) = members.next() {
        if same_name(raw, name) {
            found = Some(members.at - value.len()..members.at);
        }
    }
    found
}

/// The text of that value, when it is a string.
#[must_use]
pub fn member_text<'a>(object: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    string(member(object, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_anywhere() {
        for (object, found) in [
            (r#"{"sessionId":"s"}"#, Some("s")),
            (
                r#" { "a" : {"sessionId":"x"}, "sessionId" : "s" } "#,
                Some("s"),
            ),
            (
                r#"{"a":["sessionId"],"\u0073essionId":"\u0073\n"}"#,
                Some("s\n"),
            ),
            (r#"{"sessionId":"ü😀"}"#, Some("ü😀")),
            (r#"{"sessionId":1}"#, None),
            (r#"{"sessionId":null}"#, None),
            (r#"{"sessionid":"s"}"#, None),
            (r#"{}"#, None),
            (r#"["sessionId","s"]"#, None),
            ("", None),
        ] {
            let text = member_text(object.as_bytes(), "sessionId");
            assert_eq!(text.as_deref(), found, "{object}");
        }
    }

    #[test]
    fn invalid_text_ends_the_iteration() {
        let texts: [&[u8]; 9] = [
            b"",
            b",",
            b"}",
            b"[1",
            b"\"\\",
            b"[\"a\n\"",
            b"{\"a",
            b"{\"a\"",
            b"{\"a\":",
        ];
        for text in texts {
            assert_eq!(members(text).count(), 0, "{text:?}");
            assert!(items(text).count() <= 1, "{text:?}");
        }
    }
}
