//! ACP over HTTP: Streamable HTTP in both roles, and the WebSocket upgrades on the same port.
//!
//! `accept` is the accept loop and the HTTP server of every listener; `port` is a port that serves
//! HTTP to clients, and `server` answers ACP there; `client` is the HTTP client, and `link` a link
//! to an agent's server over it. Link and server share `headers`, and the `queue` in which a peer's
//! messages wait.

mod accept;
pub mod client;
pub mod headers;
mod link;
pub mod port;
mod queue;
mod server;

pub use accept::{accept_sockets, answer, http_server};
pub use link::{connect, connect_elephant};
pub(super) use server::listen;
