//! The recording format `.acpr`: writing, reading, checking, redacting and replaying it.
//!
//! A recording is an append-only file of JSON lines that `grep`, `jq` and `tail -f` can use: a
//! header, then one event a line, each with a checksum. Frames are stored byte for byte. A long
//! recording is cut into segments, each with the digest of the one before; finished segments may
//! be packed with zstd. This module reads no clock; `observe::recorder` does the recording.
//!
//! ```
//! use acp_relay::recording::{EventKind, Parsed, SegmentReader};
//!
//! # fn main() -> std::io::Result<()> {
//! let file = std::io::Cursor::new(b"");
//! for entry in SegmentReader::new(file) {
//!     let entry = entry?;
//!     if let Parsed::Event(event) = entry.parsed
//!         && let EventKind::Message(message) = event.kind
//!     {
//!         println!("{} {:?} {:?}", event.n, message.method, message.body.bytes());
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod beginning;
mod calendar;
pub mod canonical;
pub mod capture;
mod conversation;
mod event;
mod files;
pub mod filter;
mod insight;
mod lines;
pub mod lint;
mod origins;
mod parse;
pub mod patch;
mod read;
pub mod redact;
pub mod replay;
mod sealed;
mod spell;
mod surrogates;
mod tokens;
mod unfold;
mod verify;
mod view;
pub mod write;

pub use beginning::Misfit;
pub use calendar::calendar;
pub use conversation::{Answer, Conversation, Exchange};
pub use event::{
    Body, Event, Header, Message, MessageKind, Passed, Peer, Redaction, VERSION, What,
};
pub use files::{PACKED, PLAIN, Recording, Source, open, segments};
pub use insight::Insight;
pub use lines::Lines;
pub use parse::{Fault, Found, line};
pub use read::{Entry, Reader};
pub use sealed::{Sealed, pack};
pub use surrogates::{join, lone, parted, parted_json, spelled, tree, unspelled};
pub use tokens::members;
pub use unfold::unfold;
pub use verify::{Finding, Report, verify, verify_segment};
pub use view::{InOrder, Scene, View};
