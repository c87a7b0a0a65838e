//! The types of the Agent Connect API and their meaning in ACP. No I/O and no clock.
//!
//! Of the server: [`run_request`], [`thread`], [`search`] and [`session`] are the requests of both
//! generations of the protocol, read by [`body`]; [`messages`] builds the ACP messages for the agent,
//! [`content`] accumulates its updates, [`history_filter`] separates replayed updates from those of
//! the turn, [`interrupt`] maps its questions; [`run`] and [`thread`] are what is stored and shown;
//! [`agent`] is the descriptor, [`openapi`] the OpenAPI document.
//!
//! Of the client: [`descriptor`] is the agent of another server, [`input`] maps a prompt to its input,
//! [`run_event`] reads its events and outputs, [`sent_content`] finds what of a snapshot the ACP
//! client has not received yet, [`question`] maps an interrupt to a request to that client.
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
pub mod body;
pub mod content;
pub mod descriptor;
pub mod error;
pub mod history_filter;
pub mod input;
pub mod interrupt;
pub mod messages;
pub mod openapi;
pub mod question;
pub mod run;
pub mod run_event;
pub mod run_request;
pub mod page;
pub mod search;
pub mod sent_content;
pub mod session;
pub mod thread;
