//! Headers: the names of ACP's Streamable HTTP that client and server have to agree on, and the
//! reading of values.
//!
//! Source of the names: the RFD "Streamable HTTP & WebSocket Transport" of the protocol's
//! repository, and the official SDKs where they differ from it; the closing comment is specific to
//! acp-relay.

use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};

/// Which connection a request belongs to; given by the server in its answer to `initialize`.
pub(super) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
/// Which session a request belongs to.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
/// The last event that a client has received of a stream that it opens again.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Identifies one POST, so that the server drops its repeats
/// (draft-ietf-httpapi-idempotency-key-header). The relay's client sends it to servers that send
/// `GRACE`. With a GET that repeats one whose stream was not received, it restarts the stream.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// In the answer to `initialize`, in milliseconds: how long the server keeps the conversation of a
/// client without a connection. A server that gives it drops repeated POSTs.
pub(super) const GRACE: HeaderName = HeaderName::from_static("acp-relay-grace-ms");
/// On a stream of events, in milliseconds: the longest time between two keep-alive comments or
/// events.
pub(super) const KEEPALIVE: HeaderName = HeaderName::from_static("acp-relay-keepalive-ms");
/// With a WebSocket's request and answer, in bytes: the longest message that the sender takes.
pub(crate) const MAX_MESSAGE: HeaderName = HeaderName::from_static("acp-relay-max-message");
/// With the request for a WebSocket that carries a resumable link: the client's greeting. The answer
/// has it, too, if the server has taken it from there.
pub(crate) const LINK_HELLO: HeaderName = HeaderName::from_static("acp-relay-link-hello");
/// How the comment begins that ends a stream whose conversation is over. A code and a reason
/// follow, those of a WebSocket's close frame.
pub(super) const CLOSE: &str = "acp-relay close ";

/// A duration as these headers spell it.
pub(super) fn millis(time: Duration) -> HeaderValue {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}

/// The duration in such a header.
pub(super) fn time(headers: &HeaderMap, name: &HeaderName) -> Option<Duration> {
    let millis = headers.get(name)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_millis(millis))
}

/// The longest message that the sender of these takes, if it has announced that.
pub(crate) fn longest(headers: &HeaderMap) -> usize {
    let value = headers
        .get(MAX_MESSAGE)
        .and_then(|value| value.to_str().ok());
    link::longest(value.and_then(|value| value.parse().ok()))
}

/// Whether a body is of a content type, whatever its parameters.
pub fn is_type(headers: &HeaderMap, wanted: &str) -> bool {
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
pub(crate) fn lists(fields: &HeaderMap, name: &HeaderName, token: &[u8]) -> bool {
    let values = fields.get_all(name).iter();
    let mut tokens = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    tokens.any(|one| one.trim_ascii().eq_ignore_ascii_case(token))
}

/// Whether a request asks for an upgrade to that protocol (RFC 9110, 7.8).
pub(super) fn wants_upgrade(headers: &HeaderMap, protocol: &[u8]) -> bool {
    lists(headers, &UPGRADE, protocol)
}
