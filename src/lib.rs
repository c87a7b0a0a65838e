//! Placeholder.

pub mod transport;
pub mod wire;
