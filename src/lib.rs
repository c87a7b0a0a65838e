//! acp-relay: a bridge for the Agent Client Protocol (ACP).
#![doc = include_str!("ARCHITECTURE.md")]

pub mod wire;
pub mod canon;
pub mod dialect;
pub mod border;
pub mod recording;
pub mod guard;
pub mod agent_connect;
pub mod transport;
pub mod core;
pub mod tap;
pub mod relay;
pub mod app;
