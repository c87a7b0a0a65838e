//! The one integration binary, a module per capability.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_connect;
mod allocation;
mod app;
mod black_box;
mod acp;
mod cli;
mod config;
mod conversation;
mod deep;
mod dialect;
mod dialect_cli;
mod admission;
mod endpoint;
mod framing;
mod house;
mod inspect;
mod metrics;
mod process;
mod recording;
mod proxy;
mod replay;
mod shell;
mod support;
mod transport;
mod viewer;
mod jsonrpc;
