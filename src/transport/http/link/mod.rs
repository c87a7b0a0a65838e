//! Links to agents behind ACP's Streamable HTTP, and behind elephant.ai's routes.
//!
//! Every message to the agent is a POST, and the agent's messages come on streams of server-sent
//! events: one for the connection, and one for each session. `connect` makes the link; `post` and
//! `stream` are its tasks, and `shared` their state. `sessions` finds the session of a message.
//! `http::client` sends the requests.
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
//! would do the work twice. A relay shows itself by headers (see `http::headers`), which also give
//! how long it keeps the conversation and how often a silent stream has a keep-alive.
//!
//! **A stream is lost when a keep-alive is 10 s late**, where the interval is known: a relay
//! announces it, and of other servers it is the longest time between two comments without an event
//! in between, at least the local `http-keepalive`. One comment alone proves nothing, because it
//! may be a greeting.

mod connect;
mod post;
mod sessions;
mod shared;
mod stream;

pub use connect::{connect, connect_elephant};
