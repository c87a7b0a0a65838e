//! acp-relay: a bridge for the Agent Client Protocol (ACP).
#![doc = include_str!("ARCHITECTURE.md")]

pub mod app;
pub mod canon;
pub mod core;
pub mod dialect;
pub mod guard;
pub mod relay;
pub mod tap;
pub mod transport;
pub mod wire;
