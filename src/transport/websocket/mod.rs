//! Messages over WebSockets: `ws://` and `wss://`, one JSON text in a text message.
//!
//! tokio-tungstenite speaks the protocol; `connection` adds what it leaves to its user, over a
//! `byte_stream` that follows its frames. `link` makes the halves of a link. `handshake` opens a
//! connection as a client; connections to a listener come through `http::server`.
//!
//! # Why
//! **No extension is negotiated.** Compression across messages of different trust leaks them, and
//! costs memory for each connection.
//!
//! **An over-long message ends the connection with 1009.** The head of its frame shows it. To read
//! it to its end first, as over TCP, would take for ever when 2^62 bytes are promised.

mod byte_stream;
mod carrier;
mod connection;
mod handshake;
mod link;

pub use handshake::{Opened, open};
pub use link::{Half, halves};
pub use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
pub use tokio_tungstenite::tungstenite::protocol::Role;
pub use tokio_tungstenite::tungstenite::protocol::frame::coding::Data;

pub use carrier::connect_carrier;
pub use link::{connect, connect_link, link};
