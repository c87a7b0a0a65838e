//! Byte streams and frames: what stdio, pipes, TCP and Unix sockets have in common.
//!
//! [`halves()`] turns any reader and writer into the two halves of a link. The writer lays frames
//! the way the peer does (NDJSON until the peer has spoken), so the two share what was sniffed.
//! Not here: how the bytes come to be (see `tcp`, `unix`, `stdio`, `process`), and the framings
//! themselves (see `jsonrpc::framing`).

mod halves;
mod intake;
mod pile;
mod read;
mod thrift;
mod write;

use halves::Spoken;
pub use halves::halves;
pub(super) use halves::remote;
use intake::Intake;
use pile::Pile;
pub use read::Reader;
pub use write::Writer;
