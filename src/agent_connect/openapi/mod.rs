//! The OpenAPI document of the Agent Connect API.
//!
//! `document` holds the paths, `schemas` the bodies. It describes this server: where Agent Connect
//! leaves a choice to the agent, the document states what is accepted here.

mod document;
mod schemas;

pub use document::document;
