//! Somebody else's Agent Connect server, as an ACP agent.
//!
//! [`descriptor`] is what its agent can do, [`input`] what a prompt is for it; [`heard`] reads what
//! it says ([`graph`] when it is LangGraph's), [`options`] is what a client can choose, [`told`]
//! finds what of that is new to the client, [`ask`] what a client is asked for an interrupt, by its
//! [`payload`], and [`failure`] what it is told when something goes wrong. Not here: HTTP, and when
//! any of it happens (see `transport::agent_connect::remote`).
//!
//! # Why
//!
//! **The generation is told by the document that describes the agent**: a server that has a
//! `descriptor` has the paths of 0.2.3; one that has a `manifest` instead has the older ones. One
//! that has neither is taken for a new one that does not describe its agents.
//!
//! **Messages are told apart by their ids, or by their place.** A snapshot may hold the whole
//! thread or this run alone; what follows the last human message in it is this run's, and an id
//! that was known before the run is not.

pub mod descriptor;
pub mod input;
pub mod graph;
pub mod heard;
pub mod options;
pub mod told;
pub mod ask;
pub mod failure;
pub mod payload;
