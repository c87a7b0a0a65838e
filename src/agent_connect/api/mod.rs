//! The types of the Agent Connect API and their meaning in ACP. No I/O and no clock.
//!
//! [`run_request`], [`thread_request`], [`search`] and [`session`] are the requests of both
//! generations of the protocol, read by [`body`]; [`messages`] builds the ACP messages for the
//! agent, [`turn_output`] accumulates its updates in blocks of
//! [`content`], [`history_filter`] separates replayed updates
//! from those of the turn, [`interrupt`] maps its questions; [`record`] holds runs and threads as
//! stored and as shown; [`agent`] is the descriptor, [`openapi`] the OpenAPI document.
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
pub mod body;
pub mod content;
pub mod history_filter;
pub mod ids;
pub mod interrupt;
pub mod messages;
pub mod openapi;
pub mod page;
pub mod permissions;
pub mod record;
pub mod run_request;
pub mod search;
pub mod session;
pub mod thread_request;
pub mod timestamp;
pub mod turn_output;
