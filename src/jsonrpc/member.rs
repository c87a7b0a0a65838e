//! Finds one member of a JSON object by name.
//!
//! For single lookups in a message's body, such as the session it belongs to. It reads over the
//! text and keeps nothing.

use std::borrow::Cow;
use std::ops::Range;

use super::json::Reader;
use super::{Envelope, Frame};

/// The session that the body of a message names, if it does.
#[must_use]
pub fn named_session<'a>(frame: &'a Frame, at: &Envelope) -> Option<Cow<'a, str>> {
    const NAME: &str = "sessionId";
    let Some(index) = &at.index else {
        return member_text(at.body(frame)?, NAME);
    };
    let text = frame.as_bytes();
    let mut members = index.members();
    let session = members.find(|member| member.has_name(NAME, text))?;
    text_of(session.value.of(text))
}

/// The value of the first member with that name, as spelled; `None` when `object` is not an object
/// or has no such member. `object` is valid JSON, as `scan` has found.
#[must_use]
pub fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    member_range(object, name).map(|place| &object[place])
}

/// Where that value is.
#[must_use]
pub fn member_range(object: &[u8], name: &str) -> Option<Range<usize>> {
    let mut reader = Reader::new(object, usize::MAX);
    reader.skip_space();
    if reader.peek() != b'{' {
        return None;
    }
    reader.at += 1;
    reader.skip_space();
    while reader.peek() == b'"' {
        let key = reader.key().ok()?;
        let start = reader.at;
        reader.value(1, &mut ()).ok()?;
        if key.is(name) {
            return Some(start..reader.at);
        }
        reader.skip_space();
        if reader.peek() != b',' {
            return None;
        }
        reader.at += 1;
        reader.skip_space();
    }
    None
}

/// The text of that value, when it is a string.
#[must_use]
pub fn member_text<'a>(object: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    text_of(member(object, name)?)
}

/// The text of a string.
fn text_of(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_some() {
        return serde_json::from_slice(value).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
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
            (r#"{"sessionId""#, None),
        ] {
            let text = member_text(object.as_bytes(), "sessionId");
            assert_eq!(text.as_deref(), found, "{object}");
        }
    }
}
