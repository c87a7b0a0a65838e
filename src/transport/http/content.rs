//! The content type of a body.

use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};

/// Whether a body is of a content type, whatever its parameters.
pub(in crate::transport) fn is_type(headers: &HeaderMap, wanted: &str) -> bool {
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
