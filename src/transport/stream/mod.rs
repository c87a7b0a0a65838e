//! Byte streams and frames: what stdio, pipes, TCP and Unix sockets have in common.
//!
//! [`halves()`] turns any reader and writer into the two halves of a link. The writer uses the
//! framing of the peer (NDJSON until the peer has sent something), so the halves share what the
//! reader detected. The framings themselves are in `jsonrpc::framing`.

mod halves;
mod read_buffer;
mod write_queue;
mod read;
mod buffer_pool;
mod write;

use halves::PeerFraming;
pub use halves::halves;
pub(super) use halves::remote;
pub use read::Reader;
use read_buffer::ReadBuffer;
pub use write::Writer;
use write_queue::WriteQueue;
