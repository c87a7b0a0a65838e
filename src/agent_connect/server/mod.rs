//! The REST server, an ACP client of its agents.
//!
//! `listen` starts the service; the handlers of `routes` answer each `call` from `hub`, `threads`
//! and `start`, as long as the client has an access `permit`. `agents` are the served agents; each has an
//! `agent_connection`, the ACP client, with its link: one link carries all threads of an agent.
//! `active_thread` is a thread in use, `active_run` a run that has not ended; `perform` executes
//! it, and `stream` sends its events.
//!
//! # Decisions
//!
//! **One agent process carries many threads**, as ACP's sessions allow. So a link belongs to no
//! client; it is opened with the listener, and again when the agent has exited.
//!
//! **All reads come from the store**, and each change is written there before a client receives it.
//! State in memory only wakes waiting clients. So a relay that is killed has reported nothing that
//! it does not know after a restart.
//!
//! **The link accepts every frame at once**, because one slow client must not block the agent for
//! the others. The events kept for streaming clients are bounded per run; a client that is slower
//! than that gets the end of the run with its next request.

mod active_run;
mod active_thread;
mod agent_connection;
mod agents;
mod call;
mod hub;
mod listen;
mod perform;
mod permit;
mod response;
mod routes;
mod start;
mod stream;
mod threads;

pub(super) use listen::{beside, listen};
