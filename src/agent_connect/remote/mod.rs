//! A remote Agent Connect server, mapped to an ACP agent.
//!
//! [`descriptor`] is what its agent can do, [`input`] maps a prompt to its input; [`run_event`]
//! reads its events and outputs ([`graph`] those of LangGraph), [`options`] are the session options
//! that a client can set, [`sent_content`] finds what of a snapshot the client has not received
//! yet, [`question`] maps an interrupt to a request to the client, by its [`payload`], and
//! [`error`] holds the errors. No I/O: HTTP and the timing are in
//! `transport::agent_connect::remote`.
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

pub mod descriptor;
pub mod error;
pub mod graph;
pub mod input;
pub mod options;
pub mod payload;
pub mod question;
pub mod run_event;
pub mod sent_content;
