//! acp-relay: a bridge for the Agent Client Protocol (ACP).
#![doc = include_str!("ARCHITECTURE.md")]

pub mod docs;
pub use acp;
#[cfg(feature = "agent-connect")]
pub use agent_connect;
pub use analysis;
pub use auth;
#[cfg(feature = "cluster")]
pub use cluster;
pub use conversation;
pub use dialect;
pub use jsonrpc;
pub use link;
pub use login;
pub use observe;
pub use panics;
pub use policy;
pub use proxy;
pub use recording;
pub use replay;
pub use transport;
pub use viewer;
pub mod cli;
