//! A recording as the agent: `replay:PATH`.
//!
//! The client receives what the recorded client received. [`ReplayAddress`] is the address,
//! [`link`] the link; `recording::replay` decides which message is sent when.

mod link;
mod spot;
mod transport;

pub use spot::Spot;
pub(super) use transport::Replay;
