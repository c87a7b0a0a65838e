//! Byte streams and frames: what stdio, pipes, TCP and Unix sockets have in common.
//!
//! [`halves()`] turns any reader and writer into the two halves of a link. The writer uses the
//! framing of the peer (NDJSON until the peer has sent something), so the halves share what the
//! reader detected. The framings themselves are in `jsonrpc::framing`.

mod buffer_pool;
mod read;
mod write;

use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};

pub use read::Reader;
pub(super) use read::{Opening, Room};
pub use write::Writer;

use crate::{Link, Peer, Setup};
use link::MAX_HEADER;

/// Makes the two halves of a link. `max` is the longest message the peer may send, in bytes.
pub fn halves<R, W>(reader: R, writer: W, max: usize, setup: &Setup) -> (Reader<R>, Writer<W>)
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    let framing = setup.framing.map_or_else(OnceLock::new, OnceLock::from);
    let opening = Arc::new(Opening {
        framing,
        ..Opening::default()
    });
    (
        Reader::new(reader, Arc::clone(&opening), max, setup),
        Writer::new(writer, opening),
    )
}

/// The same for a client that has connected. `max` is as for all from other processes, with room for
/// the header of a link.
pub(super) fn accepted<R, W>(reader: R, writer: W, setup: &Setup) -> (Reader<R>, Writer<W>)
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    let max = setup.limits.frame_from_network + MAX_HEADER * usize::from(setup.detects_links);
    let (rx, tx) = halves(reader, writer, max, setup);
    (rx.refusing_http(), tx)
}

/// Makes the link to a peer in another process, whose stream ends by a half-close.
pub(super) fn remote<R, W>(reader: R, writer: W, name: String, setup: &Setup) -> Link
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let max = setup.limits.frame_from_network;
    let (rx, tx) = halves(reader, writer, max, setup);
    Link::new(Peer::remote(name, true), rx, tx, ())
}
