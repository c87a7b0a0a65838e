//! A link of an open WebSocket: its two halves.
//!
//! Not here: how it was opened (see `handshake`), and what the halves do (see `ear`, `mouth`).

use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use super::ear::{Ear, Hearing, Shared};
use super::frame::Role;
use super::mouth::Mouth;
use super::voice::Voice;
use crate::jsonrpc::Limits;
use crate::transport::{Link, Peer, Setup};

/// Makes the two halves of an open WebSocket. `begun` is what was read behind the handshake.
#[must_use]
pub fn halves<R, W>(
    reader: R,
    writer: W,
    begun: BytesMut,
    role: Role,
    limits: &Limits,
) -> (Ear<R, W>, Mouth<R, W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let shared = Arc::new(Shared {
        hearing: Mutex::new(Hearing::new(reader, begun, role, limits)),
        voice: Mutex::new(Voice::new(writer, role)),
    });
    (Ear::new(shared.clone()), Mouth::new(shared, role))
}

/// A link over an open WebSocket.
pub(in crate::transport) fn link<R, W>(
    (reader, writer): (R, W),
    begun: BytesMut,
    role: Role,
    name: String,
    setup: &Setup,
) -> Link
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (rx, tx) = halves(reader, writer, begun, role, &setup.limits);
    Link {
        peer: Peer::remote(name, false),
        rx: Box::new(rx),
        tx: Box::new(tx),
        hold: Box::new(()),
    }
}
