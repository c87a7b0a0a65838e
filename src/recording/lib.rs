//! The recording format `.acpr`: writing, reading, checking and redacting it.
//!
//! A recording is an append-only file of JSON lines that `grep`, `jq` and `tail -f` can use: a
//! header, then one event a line, each with a checksum. Frames are stored byte for byte. A long
//! recording is cut into segments, each with the digest of the one before; finished segments may
//! be packed with zstd. [`encode`] makes lines of events. This crate reads no clock; `observe::recorder`
//! does the recording.
//!
//! ```
//! use recording::{EventKind, Parsed, SegmentReader};
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

#![warn(clippy::indexing_slicing)]

pub mod canonical;
pub mod capture;
#[expect(clippy::indexing_slicing, reason = "positions it has found")]
pub mod encode;
mod event;
mod exchanges;
mod expand;
mod files;
mod folder_names;
mod packed;
mod parse;
pub mod patch;
mod peers;
mod read;
#[expect(clippy::indexing_slicing, reason = "positions it has found")]
pub mod redact;
mod seconds;
mod summary;
mod surrogates;
mod tail;
mod timestamp;
mod translation_check;
mod verify;
mod view;
pub mod write;

pub use event::{
    EventKind, Header, Message, Passed, Payload, PeerInfo, RecordedEvent, Redaction, VERSION,
};
pub use exchanges::{Exchange, ExchangeAnswer, Exchanges};
pub use expand::{expand, one_line};
pub use files::{
    NotRecording, PACKED, PLAIN, Recording, SegmentFile, SegmentSource, is_locked, on_read, open,
    recordings,
};
pub use folder_names::{find_folder, is_long};
pub use packed::{PackedReader, pack};
pub use parse::{LineError, Parsed, parse_line};
pub use peers::{peer_info, peer_name};
pub use read::{Entry, SegmentReader};
pub use summary::{Outage, Summary};
pub use surrogates::{
    decode_bytes, encode_bytes, find_lone, join_halves, parse_json, show_halves, show_halves_json,
};
pub use tail::Tail;
pub use timestamp::{rfc3339, unix_micros};
pub use verify::{Defect, VerifyReport, verify, verify_segment};
pub use view::{Reorder, View, ViewFilter};
