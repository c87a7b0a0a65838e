//! Byte streams and frames: what stdio, pipes, TCP and Unix sockets have in common.
//!
//! [`halves()`] turns any reader and writer into the two halves of a link. The writer uses the
//! framing of the peer (NDJSON until the peer has sent something), so the halves share what the
//! reader detected. The framings themselves are in `jsonrpc::framing`.

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
