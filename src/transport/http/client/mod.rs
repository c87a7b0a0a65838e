//! The client side of HTTP: links to agents behind ACP's Streamable HTTP, and behind elephant.ai's
//! routes.
//!
//! Every message to the agent is a POST, and the agent's messages come on streams of server-sent
//! events: one for the connection, and one for each session. `link` is what the relay holds; `post`
//! and `stream` are its tasks, `shared` their state, and `queue` connects them. `http_client` sends
//! requests, through connections from `dialer`, with the `cookies` of the server; `answer` reads
//! refusals. `sessions` finds the session of a message, and `sse` cuts events out of bytes.
//! `http_client` and `sse` serve the Agent Connect client as well.
//!
//! # Why
//!
//! **Tasks, and not one poll.** Elsewhere one task runs a conversation's link. Here it is a handful
//! of requests that run side by side, and hyper's pool has tasks of its own anyway; what the relay
//! polls are two bounded queues.
//!
//! **The messages of one stream are received in order, and no stream waits for another.** The
//! official servers in TypeScript and Python answer `session/load` on the connection's stream and
//! send the history on the session's; it cannot be known whether more of it is to come, so with
//! those servers the answer may arrive first. acp-relay's server, and the official one in Rust, use
//! one stream.
//!
//! **A request is not repeated** unless it has certainly not left, or the server drops repeats, as
//! a relay does: any other server may have received it and lost only the answer, and the agent
//! would do the work twice. A relay shows itself by headers (see `http::names`), which also give
//! how long it keeps the conversation and how often a silent stream has a keep-alive.
//!
//! **A stream is lost when a keep-alive is 10 s late**, where the interval is known: a relay
//! announces it, and of other servers it is the longest time between two comments without an event
//! in between, at least the local `http-keepalive`. One comment alone proves nothing, because it
//! may be a greeting.
//!
//! **Redirects and proxies are not followed.** A bearer token would go wherever the response
//! points.

mod answer;
mod cookies;
mod dialer;
mod http_client;
mod link;
mod post;
mod queue;
mod sessions;
mod shared;
mod sse;
mod stream;
mod transport;

pub(in crate::transport) use answer::read_body;
pub(in crate::transport) use http_client::{HttpClient, NoResponse, Urls};
pub use sse::{SseEvent, SseReader};

pub(super) use transport::connect;
