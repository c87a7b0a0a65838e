//! The one integration binary, a module per capability.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acp;
mod admission;
mod agent_connect;
mod agents;
mod allocation;
mod assets;
mod black_box;
mod cli;
#[cfg(feature = "cluster")]
mod cluster;
mod commands;
mod config;
mod conversation;
mod deep;
mod dialect;
mod dialect_cli;
mod doctor;
mod endpoint;
mod framing;
mod hostile;
mod inspect;
mod install;
mod jsonrpc;
mod link;
mod login;
mod manual;
mod metrics;
mod overview;
mod panics;
mod process;
mod proxy;
mod recording;
mod replay;
mod salvage;
mod shell;
mod ssh;
mod structure;
mod support;
mod targets;
mod terminal;
mod transport;
mod try_agent;
mod versions;
mod viewer;
