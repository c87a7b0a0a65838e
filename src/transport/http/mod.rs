//! ACP over HTTP: Streamable HTTP in both roles, and the door through which WebSockets come in.
//!
//! `server` answers a port, `client` speaks to one; `names` is what both have to call alike. Not
//! here: frames of WebSockets (see `websocket`), certificates (see `tls`).

pub mod client;
mod names;
pub(super) mod server;
mod transport;

pub(super) use transport::Http;
