//! How messages are cut out of a stream of bytes, and how they are laid into one.
//!
//! Two framings are in use: one message a line (NDJSON), and `Content-Length` headers as the
//! Language Server Protocol has them. The first bytes of a peer tell which one it speaks.

mod cutter;
mod head;
mod lay;
mod length;
mod ndjson;
mod sniff;

pub use cutter::{Cut, Cutter};
pub use head::{too_long, wanted};
pub use lay::Framing;
