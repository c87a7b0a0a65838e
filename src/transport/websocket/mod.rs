//! Frames over WebSockets: `ws://` and `wss://`, one JSON text in a text message.
//!
//! `handshake` decides who comes in and how the library is set up; `link` moves frames and says
//! goodbye. Not here: TLS certificates (see `tls`), sockets (see `tcp`).

mod handshake;
mod link;
mod transport;

pub use handshake::{Entrance, accept_stream, config, connect_stream};

pub(super) use transport::WebSocket;
