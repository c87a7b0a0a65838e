//! The server side of ACP over HTTP: Streamable HTTP, WebSockets and elephant.ai's routes at one
//! port.
//!
//! `routes` listens with a `service`, which all requests share; its router passes them to `post`,
//! `events`, `upgrade`, `elephant` and `registry`. A `connection` is the state of a client's requests:
//! `inbound` accepts its messages, once each (`repeats`), `routing` finds the stream for a message
//! of the agent, one of the connection's `streams`, `events` writes it, and `link` is the link of a
//! connection.
//!
//! # Why
//!
//! **No queued message is dropped, and one stream that is not opened blocks the others only for a
//! while.** There is one agent behind a connection and it cannot be paused for one session alone.
//! Queued messages have a bound for the whole connection, at which the agent is paused. The
//! messages of a session whose stream is not opened go to the connection's stream after
//! `Limits::http_stream_open`: clients accept any message there, and those that know only that stream
//! (the RFD's first form) are served so. If nothing is read for `Limits::http_write_timeout` the client is
//! lost.
//!
//! **Messages of a session that the client does not know yet go to the connection's stream**,
//! followed by the answer that names the session, as over stdio. Real agents do send messages
//! before that answer.
//!
//! **The answer to `session/load` or `session/resume` follows the session's history**, as ACP
//! requires and as it would over stdio; two streams have no order, so both go on one. On the
//! session's when its client has that open, as in the official server in Rust; the RFD puts the
//! answer on the connection's stream. A client that has never opened it (the official one in
//! Python) gets the history there too, before the answer. There is no order between different
//! sessions, and between a session and messages without one.
//!
//! **A header adds nothing to a message.** The official Rust server writes the session of the
//! header into messages that lack it. Here it only chooses the stream of the answer: a message is
//! passed on with the bytes it came with.

mod connection;
mod elephant;
mod events;
mod inbound;
mod link;
mod post;
mod registry;
mod repeats;
mod routes;
mod routing;
mod service;
mod streams;
mod upgrade;

pub(crate) use routes::listen;
