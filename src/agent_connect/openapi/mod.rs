//! The OpenAPI document of what is served.
//!
//! `document` is the paths, `schemas` what they take and give. It says what is true of this server:
//! where Agent Connect leaves something to the agent, what we take is there. Not here: the serving.

mod document;
mod schemas;

pub use document::document;
