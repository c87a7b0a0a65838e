//! What a message is.
//!
//! Frames, the envelope inside them, the framings they travel in, the errors we make ourselves.
//! No async, no policy, nothing about ACP's meaning.
//!
//! - `frame` is one JSON-RPC text. `scan` proves that it is JSON and finds its `envelope`, with the
//!   `id`, and the `outline` of its body; `scanner` does so for one message after the other. Below
//!   it are `seen`, which says what kind of message the members make, `jsonrpc`, the names that they
//!   have, and `json`, which reads, with `plain` for strings, `key` for names and `levels` for what
//!   is open; `stop` is why it stops.
//! - `flaw` is what can be wrong with a text, [`reply`] every message of our own, `farewell` and
//!   `exit` are how links and processes end, and `limits` are all bounds.
//! - [`framing`] cuts messages out of a stream of bytes and lays them into one.
//! - `member` looks for one member of an object, and `printable` makes others' text harmless.

mod envelope;
mod exit;
mod farewell;
mod flaw;
mod frame;
pub mod framing;
mod id;
mod json;
mod jsonrpc;
mod key;
mod levels;
mod limits;
mod member;
mod outline;
mod plain;
mod printable;
pub mod reply;
mod scan;
mod scanner;
mod seen;
mod side;
mod stop;

pub(crate) use envelope::unescaped;
pub use envelope::{Envelope, IdAt, Kind, Span, Stem};
pub use exit::Exit;
pub use farewell::Farewell;
pub use flaw::{Fault, Flaw, Role};
pub use frame::Frame;
pub use id::{Id, IdBuf};
pub use json::is_json;
pub use limits::Limits;
pub use member::{member, member_place, member_text, named_session};
pub use outline::{Nth, Outline, Outlined};
pub use printable::printable;
pub use scan::{Shape, scan, scan_head, scan_text};
pub use scanner::Scanner;
pub use side::Side;
