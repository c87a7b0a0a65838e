//! Byte streams and frames: what stdio, pipes, TCP and Unix sockets have in common.
//!
//! [`halves()`] turns any reader and writer into the two halves of a link. The writer uses the
//! framing of the peer (NDJSON until the peer has sent something), so the halves share what the
//! reader detected. The framings themselves are in `jsonrpc::framing`.

mod buffer_pool;
mod halves;
mod read;
mod read_buffer;
mod write;
mod write_queue;

use halves::PeerFraming;
pub use halves::halves;
pub(super) use halves::remote;
pub use read::Reader;
use read_buffer::ReadBuffer;
pub use write::Writer;
use write_queue::WriteQueue;
