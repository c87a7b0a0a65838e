//! acp-relay: a bridge for the Agent Client Protocol (ACP).
#![doc = include_str!("ARCHITECTURE.md")]

pub mod docs;
pub mod panics;
pub mod jsonrpc;
pub mod acp;
pub mod dialect;
pub mod policy;
pub mod recording;
pub mod auth;
pub mod link;
pub mod agent_connect;
pub mod transport;
pub mod conversation;
pub mod observe;
pub mod proxy;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod viewer;
pub mod cli;
