//! ACP over HTTP: Streamable HTTP in both roles, and the door through which WebSockets come in.
//!
//! `port` is any port that speaks HTTP, `server` what answers ACP there and `listen` both of them;
//! `client` speaks to one; `names` is what both have to call alike, and `content` what a body says
//! that it is. Not here: frames of WebSockets (see `websocket`), certificates (see `tls`).

pub mod client;
pub(super) mod content;
mod listen;
mod names;
pub(super) mod port;
mod server;
mod transport;

pub(super) use listen::listen;
pub(super) use transport::Http;
