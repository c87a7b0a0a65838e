//! Frames over WebSockets: `ws://` and `wss://`, one JSON text in a text message, one message in
//! a frame.
//!
//! `handshake` opens one as a client, over the little HTTP of `http`; clients of ours come in
//! through `http::server`. `frame` is the protocol's
//! frame and `assembly` makes messages of frames; neither knows a socket. `ear` and `mouth` are
//! the halves of a link; `voice` is what they share; `liveness` decides when a silent peer gets a
//! ping and when it is lost. Not here: TLS certificates (see `tls`), sockets (see `tcp`).
//!
//! # Why
//!
//! **The frame layer is ours.** Moving messages is this program's trade, and the library that was
//! here before moves them for programs that keep them. It keeps the memory of the largest message
//! for as long as the connection lives, copies large messages, and does not come in halves. RFC
//! 6455 is short, and the Autobahn suite (`tests/peers`) judges what we make of it, in both roles.
//!
//! **An over-long message ends the connection with 1009.** The header of its frame shows it. To
//! read it to its end first, as over TCP, would take for ever when 2^62 bytes are promised.
//!
//! **The ear answers pings.** The relay polls the mouth only when there is something to say; a
//! pong that waited for that would be late for whoever asks whether we live.

mod assembly;
mod ear;
mod frame;
mod handshake;
mod http;
mod link;
mod liveness;
mod masks;
mod mouth;
mod transport;
mod voice;

pub use assembly::Kind;
pub use ear::Ear;
pub use frame::Role;
pub use handshake::{HandshakeError, accept_key, connect_stream};
pub use link::halves;
pub use mouth::Mouth;

pub(super) use link::link;
pub(super) use transport::WebSocket;
