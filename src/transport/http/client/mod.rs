//! Our client's half of HTTP: links to agents behind ACP's Streamable HTTP, and behind elephant.ai's
//! routes.
//!
//! Every message to the agent is a POST, and what it says comes on streams of server-sent events:
//! one for the connection, and one for each session. `link` is what the relay holds; `post` and
//! `stream` are its tasks, `exchange` is what they share, `queue` what stands between. `site` asks
//! the server, through connections from `dialer`, with the `cookies` it has set; `answer` reads what
//! it refuses. `sessions` finds the session of a message, and `sse` cuts events out of bytes.
//! `site` and `sse` serve Agent Connect's client as well.
//!
//! # Why
//!
//! **Tasks, and not one poll.** A conversation's link is one task's everywhere else. Here it is a
//! handful of requests that go on side by side, and hyper's pool has tasks of its own anyway; what
//! the relay polls are two bounded queues.
//!
//! **What one stream says is heard in its order, and nothing is held back for another stream.** The
//! official servers in TypeScript and Python answer `session/load` on the connection's stream and
//! send the history on the session's; whether more of it is to come nobody can know, so over those
//! the answer may be heard first. Our own server, and the official one in Rust, use one stream.
//!
//! **A request is not repeated** unless it has certainly not left, or the server drops repeats, as
//! a relay does: any other that has taken it and could not say so would have the agent do the work
//! twice. A relay shows itself by headers (see `http::names`), which also tell how long it keeps the
//! conversation and how often a silent stream has a sign of life.
//!
//! **A stream is lost when a sign of life is 10 s late**, where the interval is known: a relay gives
//! it, and of other servers it is the longest time between two comments without an event in between,
//! at least our own `http-keepalive`. One comment alone tells nothing, for it may be a greeting.
//!
//! **Redirects and proxies are not followed.** A bearer token would go wherever the answer points.

mod answer;
mod cookies;
mod dialer;
mod exchange;
mod link;
mod post;
mod queue;
mod sessions;
mod site;
mod sse;
mod stream;
mod transport;

pub(in crate::transport) use answer::whole;
pub(in crate::transport) use site::{Places, Silence, Site};
pub use sse::{Event, Sse};

pub(super) use transport::connect;
