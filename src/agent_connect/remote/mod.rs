//! The Agent Connect client: a link to an ACP agent in this process, which forwards to a REST
//! server.
//!
//! `dispatch` opens the link and passes the client's messages to the `agent`: a session is one of the
//! `threads`, a prompt is a `run` on the server. `find_agent` finds the agent's
//! descriptor, which says what it can do, and `server` sends the HTTP requests. What the messages of
//! both sides mean is in `api`.
//!
//! # Decisions
//!
//! **The document that describes the agent decides the generation**: a server that has a
//! `descriptor` has the paths of 0.2.3; one that has a `manifest` instead has the older ones. A
//! server that has neither is treated as a new one that does not describe its agents.
//!
//! **Messages are identified by their ids, or by their position.** A snapshot may hold the whole
//! thread or this run alone; the messages after the last human message belong to this run, and a
//! message with an id that was known before the run does not.
//!
//! **Every request is a task of its own**, because a turn lasts as long as the agent works and must
//! not block another session, or its own cancellation. The tasks send through one bounded queue, so
//! a client that reads slowly slows the streams down.
//!
//! **No run is started twice.** A request is repeated if its server was too busy to process it
//! (429, 503), and another path is tried if the server does not have the first (404, 405, 501).
//! After any other error the run may have started.

mod agent;
mod dispatch;
mod find_agent;
mod run;
mod server;
mod threads;

pub(super) use dispatch::{check, connect};
