//! The names of ACP's Streamable HTTP that client and server have to agree on.
//!
//! Source: the RFD "Streamable HTTP & WebSocket Transport" of the protocol's repository, and the
//! official SDKs where they differ from it; the farewell is our own. Not here: what they are used
//! for.

use hyper::header::HeaderName;

/// Which connection a request belongs to; given by the server in its answer to `initialize`.
pub(super) const CONNECTION: HeaderName = HeaderName::from_static("acp-connection-id");
/// Which session a request belongs to.
pub(super) const SESSION: HeaderName = HeaderName::from_static("acp-session-id");
/// What the comment begins with that ends a stream whose conversation is over. A code and its words
/// follow, those of a WebSocket's close frame.
pub(super) const FAREWELL: &str = "acp-relay farewell ";
