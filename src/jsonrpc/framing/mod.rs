//! Cuts messages out of a byte stream, and writes them into one.
//!
//! Two framings are in use: one message a line (NDJSON), and `Content-Length` headers as in the
//! Language Server Protocol. The first bytes of a peer show which one it uses.

mod cutter;
mod head;
mod lay;
mod length;
mod ndjson;
mod sniff;

pub use cutter::{Cut, Cutter};
pub use head::{too_long, wanted};
pub use lay::Framing;
