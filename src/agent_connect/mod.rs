//! AGNTCY's Agent Connect Protocol, mapped to ACP.
//!
//! Agent Connect is REST: agents, threads, and runs that are polled, waited for or streamed. A
//! `thread` is an ACP session, a `run` is a turn. [`route`] and [`run_request`] parse the requests
//! of both generations of the protocol; [`messages`] builds the ACP messages for the agent,
//! [`turn_output`] accumulates its updates, [`history_filter`] separates replayed updates from
//! those of the turn, [`interrupt`] maps its questions; [`record`] holds runs and threads as stored
//! and as shown; [`agent`] is the descriptor, [`openapi`] the OpenAPI document. No I/O and no
//! clock: HTTP, the database and the timing are in `transport::agent_connect`.
//!
//! # Decisions
//!
//! **Where the generations differ in shape, a superset is written**; where they differ in meaning,
//! the path decides: `/output` answers as the older one, `/wait` as the newer.
//!
//! **A run that needs a login fails** instead of being interrupted: nothing in a resume payload
//! could log the agent in.
//!
//! **Values hold no tool calls.** Values are sent repeatedly while a run is streamed; the thread's
//! state holds the tool calls once, and the updates themselves are streamed in the mode `custom`.

pub mod agent;
pub mod api_error;
pub mod fields;
pub mod history_filter;
pub mod interrupt;
pub mod messages;
pub mod openapi;
pub mod record;
pub mod remote;
pub mod route;
pub mod run_request;
pub mod search;
pub mod session;
pub mod timestamp;
pub mod turn_output;
pub mod uuid;
