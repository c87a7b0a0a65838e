//! ACP over HTTP: Streamable HTTP in both roles, and the WebSocket upgrades on the same port.
//!
//! `accept` is the accept loop and the HTTP server of every listener; `port` is a port that serves
//! HTTP to clients, `server` answers ACP there and `listen` combines both; `client` is the HTTP
//! client, and `link` a link to an agent's server over it; `names` are the headers that link and
//! server use, and `content` the content types.

mod accept;
pub mod client;
pub(crate) mod content;
mod link;
mod listen;
mod names;
pub(crate) mod port;
mod server;

pub use accept::{accept_sockets, http_server};
pub(super) use link::{connect, connect_elephant};
pub(super) use listen::listen;
