//! AGNTCY's Agent Connect Protocol, and what it means in ACP.
//!
//! Agent Connect is REST: agents, threads, and runs that are polled, waited for or streamed. A
//! `thread` is an ACP session, a `run` is a turn. [`route`] and [`run_request`] read what a client
//! wants, in both generations of the protocol; [`say`] is what the agent is told for it, [`fold`]
//! what its updates come to and [`past`] which of them are older than the turn, [`interrupt`] what
//! becomes of its questions; [`record`] is what is kept of a run and a thread, and how it is shown;
//! [`agent`] is the descriptor, [`openapi`] the document that describes all of it. No I/O and no
//! clock. Not here: HTTP, the database, and when anything happens (see `transport::agent_connect`).
//!
//! # Why
//!
//! **Where the generations differ in shape a superset is written**, and where they differ in meaning
//! the path decides: `/output` answers as the older one, `/wait` as the newer.
//!
//! **A run that needs a login fails**, rather than being interrupted: nothing that a client could
//! send in a resume payload would log the agent in.
//!
//! **Values hold no tool calls.** They are sent again and again while a run is streamed; the
//! thread's state has them, once, and the updates themselves are streamed in the mode `custom`.

pub mod fault;
pub mod uuid;
pub mod moment;
pub mod fields;
pub mod route;
pub mod session;
pub mod run_request;
pub mod search;
pub mod say;
pub mod fold;
pub mod past;
pub mod interrupt;
pub mod record;
pub mod agent;
pub mod openapi;
pub mod remote;
