//! ACP over HTTP: Streamable HTTP in both roles, and the WebSocket upgrades on the same port.
//!
//! `port` is a port that serves HTTP, `server` answers ACP there and `listen` combines both;
//! `client` is the client side; `names` are the headers both use, and `content` the content types.

pub mod client;
pub(super) mod content;
mod listen;
mod names;
pub(super) mod port;
mod server;
mod transport;

pub(super) use listen::listen;
pub(super) use transport::Http;
