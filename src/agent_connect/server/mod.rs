//! The REST server, an ACP client of its agents.
//!
//! `listen` starts the service; the handlers of `routes` answer each `call` from the `hub`. `agents`
//! are the served agents; each has a `connection`, the ACP client, whose link carries all threads of
//! the agent. `run` is a run that has not ended; `perform` starts, executes and resumes it, in one of
//! the `sessions` of threads, and `stream` sends its events.
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

mod agents;
mod call;
mod connection;
mod hub;
mod listen;
mod perform;
mod routes;
mod run;
mod sessions;
mod stream;

pub(super) use listen::{beside, listen};
