//! Agent Connect's client: an ACP agent by itself, whose words are those of an agent behind REST.
//!
//! `connect` opens a link, and `link` is what the relay holds of it. `agent` hears what the client
//! says and answers it: sessions are `threads`, a prompt is a `turn`, whose paths are a `run`'s.
//! `learn` finds the agent's descriptor, and `server` asks over HTTP, with the client's half of
//! `transport::http`. What all of it means is in the room `agent_connect::remote`.
//!
//! # Why
//!
//! **Every request is a task of its own**, for a turn lasts as long as the agent likes and must not
//! keep a second session, or its own cancellation, from being heard. What they say goes through one
//! bounded queue, so a client that reads slowly slows the streams down.
//!
//! **No run is started twice.** A request is repeated when its server said that it was too busy to
//! look at it (429, 503), and another path is tried when the server does not have the first (404,
//! 405, 501). After anything else the run may have begun.

mod agent;
mod connect;
mod learn;
mod link;
mod run;
mod server;
mod threads;
mod turn;

pub(super) use connect::{check, connect};
