//! Helpers of several test modules.

pub(crate) mod agent;
pub(crate) mod bridge;
pub(crate) mod http;
pub(crate) mod http_server;
pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod program;
pub(crate) mod terminal;
pub(crate) mod viewed;
pub(crate) mod websocket;
