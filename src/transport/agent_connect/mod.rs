//! Agent Connect's server: REST in front, and behind it a client that speaks canonical ACP; and, in
//! `remote`, its client: an agent that speaks canonical ACP, and behind it REST.
//!
//! `listen` serves a port; `routes` answers with an `answer` what `hub` and `threads` and, for runs,
//! `start` do, to those who may `stay`. `agents` are those that are served; to each there is a
//! `line`, which is the ACP client, and `link` is what the relay sees of it: one link carries all
//! threads of an agent. `active_thread` is a thread in use, `active_run` a run that is not over;
//! `perform` carries it to its end, `stream` tells its events, `webhook` its status. `store` keeps
//! what has been. What all of it means is in the room `agent_connect`.
//!
//! # Why
//!
//! **One agent process carries many threads**, as ACP's sessions are made for. So a link is no
//! client's; it is opened when the listener is, and again when the agent has gone.
//!
//! **All that is read comes out of the store**, and is written there before anybody hears of it.
//! What is in memory only wakes those who wait. So a relay that is killed has told nothing that it
//! does not know afterwards.
//!
//! **The link takes all that it is given at once**, for one slow client must not keep the agent from
//! the others. What is kept for those who follow has a bound for each run; who is slower than that
//! hears the end of the run where it asks for it.

mod agents;
mod answer;
mod hub;
mod line;
mod link;
mod listen;
mod active_run;
mod perform;
mod query;
mod remote;
mod routes;
mod active_thread;
mod settings;
mod start;
mod stay;
mod store;
mod stream;
mod threads;
mod transport;
mod webhook;

pub(super) use listen::serve;
pub(super) use routes::Service;
pub use settings::{AgentConnect, Offer};
pub(super) use transport::Rest;
