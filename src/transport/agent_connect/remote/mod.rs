//! The Agent Connect client: a link to an ACP agent in this process, which forwards to a REST
//! server.
//!
//! `connect` opens the link, whose halves are in `link`. `agent` handles the client's messages:
//! sessions are `threads`, a prompt is a `turn`, and the paths of its run are in `run`.
//! `find_agent` finds the agent's descriptor, and `server` sends the HTTP requests, with the client
//! of `transport::http`. The protocol itself is in the module `agent_connect::remote`.
//!
//! # Decisions
//!
//! **Every request is a task of its own**, because a turn lasts as long as the agent works and must
//! not block another session, or its own cancellation. The tasks send through one bounded queue, so
//! a client that reads slowly slows the streams down.
//!
//! **No run is started twice.** A request is repeated if its server was too busy to process it
//! (429, 503), and another path is tried if the server does not have the first (404, 405, 501).
//! After any other error the run may have started.

mod agent;
mod connect;
mod find_agent;
mod link;
mod run;
mod server;
mod threads;
mod turn;

pub(super) use connect::{check, connect};
