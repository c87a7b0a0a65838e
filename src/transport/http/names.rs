//! The names of ACP's Streamable HTTP that client and server have to agree on.
//!
//! Source: the RFD "Streamable HTTP & WebSocket Transport" of the protocol's repository, and the
//! official SDKs where they differ from it; the closing comment is specific to acp-relay.

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// Which connection a request belongs to; given by the server in its answer to `initialize`.
pub(super) const CONNECTION: HeaderName = HeaderName::from_static("acp-connection-id");
/// Which session a request belongs to.
pub(super) const SESSION: HeaderName = HeaderName::from_static("acp-session-id");
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
