//! One JSON-RPC text, with the bytes it came with.
//!
//! A frame is the currency of the whole program: transports yield it, the core judges it, sinks
//! send it. Cloning it is a reference count. Not here: where its parts lie (see `envelope`) and
//! how it was cut out of a stream (see `framing`).

use std::fmt;

use bytes::Bytes;

/// One JSON-RPC text, verbatim: no terminator, no header, no surrounding frame.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame(Bytes);

impl Frame {
    /// Takes the bytes as they are; nothing is checked.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, given away.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no text at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&'static str> for Frame {
    fn from(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }
}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Vec<u8>> for Frame {
    fn from(text: Vec<u8>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Frame {
    /// At most 200 bytes of it, so that a log line stays a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(200)];
        write!(
            f,
            "Frame({} B, {:?})",
            self.0.len(),
            String::from_utf8_lossy(shown)
        )
    }
}
