//! The two halves of a link over a byte stream, the framing they share, and the link that TCP and
//! Unix sockets make of them.

use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Reader, Writer};
use crate::jsonrpc::framing::Framing;
use crate::transport::{Link, Peer, Setup};

/// Makes the two halves of a link. `max` is the longest message the peer may send, in bytes.
pub fn halves<R, W>(reader: R, writer: W, max: usize, setup: &Setup) -> (Reader<R>, Writer<W>)
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    let framing = setup.framing.map_or_else(OnceLock::new, OnceLock::from);
    let framing = Arc::new(framing);
    (
        Reader::new(reader, framing.clone(), max, setup),
        Writer::new(writer, framing),
    )
}

/// Makes the link to a peer in another process, whose stream ends by a half-close.
pub(in crate::transport) fn remote<R, W>(reader: R, writer: W, name: String, setup: &Setup) -> Link
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let max = setup.limits.frame_from_network;
    let (rx, tx) = halves(reader, writer, max, setup);
    Link {
        peer: Peer::remote(name, true),
        rx: Box::new(rx),
        tx: Box::new(tx),
        guard: Box::new(()),
    }
}

/// The framing the peer uses, detected by the reader of a link and used by its writer.
pub(super) type PeerFraming = Arc<OnceLock<Framing>>;
