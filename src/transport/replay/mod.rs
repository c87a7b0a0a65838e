//! A recording as the agent: `replay:PATH`.
//!
//! The client receives what the recorded client received. [`ReplayAddress`] is the address,
//! [`link`] the link; `recording::replay` decides which message is sent when.

mod address;
mod link;

pub use address::ReplayAddress;
pub(crate) use link::open;
