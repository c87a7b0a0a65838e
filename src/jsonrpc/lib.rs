//! JSON-RPC frames: scanning, framing, limits and the relay's own messages. For programs that pass
//! messages on, and need their kind, id and method without a copy or a tree.
//!
//! ```
//! use jsonrpc::{Frame, Kind, Limits, Scanned, scan};
//!
//! let frame = Frame::from(r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{}}"#);
//! let Scanned::Message(envelope) = scan(&frame, &Limits::default()) else {
//!     panic!("it is a message")
//! };
//! assert_eq!(envelope.kind, Kind::Request);
//! assert_eq!(envelope.method(&frame), "session/prompt");
//! assert_eq!(envelope.id(&frame).json(), b"7");
//! ```
//!
//! No async code, no policy and no knowledge of ACP.
//!
//! - `frame` is one JSON-RPC text. `scan` validates it and finds its `envelope`, with the `id` and
//!   the `member_index` of its body; `scanner` does so for a sequence of messages. They build on
//!   `field_set` (which members make which kind of message), `field` (the members' names), `json`
//!   (the reader), `string_scan`, `key`, `span`, `levels` (open containers) and `read_error`.
//! - `frame_error` says what can be wrong with a text, [`reply`] makes every message of our own,
//!   `close_reason` and `exit` say how links and processes end, and `limits` are all bounds.
//! - [`framing`] cuts messages out of a byte stream and writes them into one.
//! - `pieces` finds objects in a line that is not one message.
//! - `pending_requests` is the table of open requests by id.
//! - [`text`] is the cursor over text that is known to be valid, `printable` makes untrusted text
//!   safe to show, `duration` reads durations, `names` makes enums whose variants have names,
//!   `opaque_debug` shows the names of types, `choice` is for enums whose variants users choose from,
//!   and `nearest` finds the word that was probably meant.

mod choice;
mod close_reason;
mod duration;
mod envelope;
mod exit;
mod field;
mod field_set;
mod frame;
mod frame_error;
pub mod framing;
mod id;
mod json;
mod key;
mod levels;
pub mod limits;
mod member_index;
mod names;
mod nearest;
mod opaque_debug;
mod pending_requests;
mod pieces;
mod printable;
mod read_error;
pub mod reply;
mod scan;
mod scanner;
mod side;
mod span;
mod string_scan;
pub mod text;

pub use choice::Choice;
pub use close_reason::CloseReason;
pub use duration::parse_duration;
pub use envelope::{Envelope, Kind, named_session};
pub use exit::Exit;
pub use field::MEMBER_NAMES;
pub use frame::Frame;
pub use frame_error::{FrameError, FrameFault, Role};
pub use id::{Id, IdBuf};
pub use json::is_json;
pub use limits::Limits;
pub use member_index::{IndexedMember, MemberIndex, SlotId};
pub use nearest::{did_you_mean, nearest};
pub use pending_requests::{PendingRequests, Rejected};
pub use pieces::{Pieces, pieces};
pub use printable::{printable, truncated};
pub use scan::{Scanned, scan, scan_head, scan_text};
pub use scanner::Scanner;
pub use side::Side;
pub use span::Span;
pub use text::unescaped;
pub use text::{member, member_range, member_text};
