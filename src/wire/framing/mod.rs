//! How messages are cut out of a stream of bytes, and how they are laid into one.
//!
//! Two framings are in use: one message a line (NDJSON), and `Content-Length` headers as the
//! Language Server Protocol has them. The first bytes of a peer tell which one it speaks.

use bytes::BytesMut;

use super::{Flaw, Frame, Limits};

/// A way to lay messages into a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One message a line.
    Ndjson,
    /// A `Content-Length` header block before each message.
    ContentLength,
}

/// One thing cut out of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A message, or a stray line; `scan` tells.
    Frame(Frame),
    /// Something that could not be cut out whole. The stream goes on.
    Flaw(Flaw),
}

/// Cuts a stream into messages; one for each link and direction.
#[derive(Debug)]
pub struct Cutter {}

impl Cutter {
    /// `max` is the longest message in bytes; `framing` is sniffed when it is not given.
    #[must_use]
    pub fn new(framing: Option<Framing>, max: usize, limits: &Limits) -> Self {
        let _ = (framing, max, limits);
        Self {}
    }

    /// The framing the peer speaks, once it has shown it.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        None
    }

    /// Takes the next message out of `buffer`; `None` when more bytes are needed.
    ///
    /// # Errors
    /// When the stream cannot be followed any more: the link has to be closed.
    pub fn cut(&mut self, buffer: &mut BytesMut) -> Result<Option<Cut>, Flaw> {
        let _ = buffer;
        Ok(None)
    }

    /// Takes what is left when the stream has ended.
    pub fn finish(&mut self, buffer: &mut BytesMut) -> Option<Cut> {
        let _ = buffer;
        None
    }
}

impl Framing {
    /// Appends `frame` to `out` in this framing. NDJSON turns the line breaks of a pretty-printed
    /// message into spaces, which are the same to JSON.
    pub fn lay(self, frame: &Frame, out: &mut BytesMut) {
        let _ = (frame, out);
    }
}
