//! Placeholder.

pub mod guard;
pub mod transport;
pub mod wire;
