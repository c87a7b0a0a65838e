//! Cuts messages out of a byte stream, and writes them into one.
//!
//! Two framings are in use: one message a line (NDJSON), and `Content-Length` headers as in the
//! Language Server Protocol. The first bytes of a peer show which one it uses.

mod content_length;
mod decoded;
mod decoder;
mod encode;
mod ndjson;
mod partial;
mod sniff;

pub use decoded::Decoded;
pub use decoder::Decoder;
pub use encode::Framing;
pub use partial::{head_len, too_long};
