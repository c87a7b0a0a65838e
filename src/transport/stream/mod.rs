//! Byte streams and frames: what stdio, pipes, TCP and Unix sockets have in common.
//!
//! [`halves`] turns any reader and writer into the two halves of a link. The writer lays frames
//! the way the peer does (NDJSON until the peer has spoken), so the two share what was sniffed.
//! Not here: how the bytes come to be (see `tcp`, `unix`, `stdio`, `process`), and the framings
//! themselves (see `wire::framing`).

mod read;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncRead, AsyncWrite};

pub use read::Reader;
pub use write::Writer;

use super::Setup;
use crate::wire::framing::Framing;

/// Makes the two halves of a link. `max` is the longest message the peer may send, in bytes.
pub fn halves<R, W>(reader: R, writer: W, max: usize, setup: &Setup) -> (Reader<R>, Writer<W>)
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    let spoken = Spoken::new(setup.framing);
    (
        Reader::new(reader, spoken.clone(), max, setup),
        Writer::new(writer, spoken),
    )
}

/// The framing a peer speaks, told by the reader of a link to its writer.
#[derive(Clone, Debug)]
struct Spoken(Arc<AtomicU8>);

impl Spoken {
    const UNKNOWN: u8 = 0;
    const NDJSON: u8 = 1;
    const CONTENT_LENGTH: u8 = 2;

    fn new(known: Option<Framing>) -> Self {
        let spoken = Self(Arc::new(AtomicU8::new(Self::UNKNOWN)));
        if let Some(framing) = known {
            spoken.tell(framing);
        }
        spoken
    }

    fn tell(&self, framing: Framing) {
        let code = match framing {
            Framing::Ndjson => Self::NDJSON,
            Framing::ContentLength => Self::CONTENT_LENGTH,
        };
        // Nothing else is published with it, so no ordering is needed.
        self.0.store(code, Ordering::Relaxed);
    }

    fn get(&self) -> Option<Framing> {
        match self.0.load(Ordering::Relaxed) {
            Self::NDJSON => Some(Framing::Ndjson),
            Self::CONTENT_LENGTH => Some(Framing::ContentLength),
            _ => None,
        }
    }
}
