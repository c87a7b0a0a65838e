//! The server's side of ACP over HTTP: Streamable HTTP, WebSockets and elephant.ai's routes at one
//! port.
//!
//! `listen` serves the port with a `service`, which all requests share, and `seat` finds the worker
//! of a socket. By `routes` a request is answered by `post`, `get`, `upgrade` or `elephant` with an
//! `answer`, or refused (`refuse`). A `connection` is what a client's requests have in common, kept
//! in the `register`: `inbound` takes its messages, once each (`repeated`) and in their order
//! (`turn`), `routing` finds the `stream` for what the agent says, one of the connection's
//! `streams`, `events` writes it, and `link` shows all of it to the relay as a link. Not here: the
//! port (see `port`), frames of WebSockets (see `websocket`).
//!
//! # Why
//!
//! **Nothing that waits is dropped, and one stream that nobody opens holds up the others only for
//! a while.** There is one agent behind a connection and it cannot be paused for one session
//! alone. What waits has a bound for the whole connection, at which the agent is paused. What
//! waits for a session whose stream is not opened goes to the connection's stream after
//! `Limits::http_unopened`: clients take any message there, and those that know only that stream
//! (the RFD's first form) are served so. If nothing is taken for `Limits::http_stall` the client
//! is lost.
//!
//! **A session nobody was told of speaks on the connection's stream**, where the answer that tells
//! of it comes behind, as over stdio. Real agents do speak before that answer.
//!
//! **The answer to `session/load` or `session/resume` comes behind the session's history**, as ACP
//! has it and as it would over stdio; two streams have no order, so both go on one. On the session's
//! when its client has that open, as the official server in Rust has it; the RFD puts the answer on
//! the connection's stream. A client that has never opened it (the official one in Python) has the
//! history there too, before the answer. Not in order are different sessions, and a session with
//! what names none.
//!
//! **A header adds nothing to a message.** The official Rust server writes the session of the
//! header into messages that lack it. Here it only chooses the stream of the answer: a message
//! leaves with the bytes it came with.

mod answer;
mod connection;
mod elephant;
mod events;
mod get;
mod inbound;
mod link;
mod listen;
mod post;
mod refuse;
mod register;
mod repeated;
mod routes;
mod routing;
mod seat;
mod service;
mod stream;
mod streams;
mod turn;
mod upgrade;

pub(in crate::transport::http) use listen::serve;
pub(in crate::transport::http) use service::Service;
