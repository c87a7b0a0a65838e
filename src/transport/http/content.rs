//! Values of headers: the content type of a body, and lists.

use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};

/// Whether a body is of a content type, whatever its parameters.
pub(crate) fn is_type(headers: &HeaderMap, wanted: &str) -> bool {
    let given = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let media_type = given.and_then(|value| value.split(|byte| *byte == b';').next());
    media_type.is_some_and(|essence| essence.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()))
}

/// The content type as it was sent, for a person.
pub(super) fn content_type(headers: &HeaderMap) -> String {
    let given = headers.get(CONTENT_TYPE);
    let given = given.map_or(&b"nothing"[..], HeaderValue::as_bytes);
    format!("{:?}", String::from_utf8_lossy(given))
}

/// Whether `token` is among the comma-separated values of the headers of that name.
pub(in crate::transport) fn lists(fields: &HeaderMap, name: &HeaderName, token: &[u8]) -> bool {
    let values = fields.get_all(name).iter();
    let mut tokens = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    tokens.any(|one| one.trim_ascii().eq_ignore_ascii_case(token))
}
