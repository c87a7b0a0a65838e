//! One JSON-RPC text, with the bytes it came with.
//!
//! Transports yield frames, the conversation checks them, and sinks send them. Cloning one costs a
//! reference count.

use std::fmt;

use bytes::Bytes;

/// What an entry of a queue and the allocation of a small frame take, in bytes.
const KEEPING: usize = 64;

/// One JSON-RPC text, verbatim: no terminator, no header, no surrounding frame.
#[derive(Clone)]
pub struct Frame {
    bytes: Bytes,
    /// Whether it is known to be UTF-8.
    is_text: bool,
}

impl Frame {
    /// Takes the bytes unchecked.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            is_text: false,
        }
    }

    /// Marks it as valid UTF-8, so that it is not checked again.
    pub(super) const fn mark_text(&mut self) {
        self.is_text = true;
    }

    /// Whether it is known to be UTF-8, as `scan` finds out. One that was not checked may be UTF-8
    /// too.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        self.is_text
    }

    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text, by value.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What it takes of a bound on the bytes that wait or are kept: its length, and what keeping it
    /// costs, so that frames without bytes count, too.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.len() + KEEPING
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Frames are equal when their bytes are.
impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Frame {}

impl From<&'static str> for Frame {
    fn from(text: &'static str) -> Self {
        Self::new(Bytes::from_static(text.as_bytes()))
    }
}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Vec<u8>> for Frame {
    fn from(text: Vec<u8>) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Frame {
    /// Shows at most 200 bytes, so that a log line stays a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.bytes[..self.bytes.len().min(200)];
        write!(
            f,
            "Frame({} B, {:?})",
            self.bytes.len(),
            String::from_utf8_lossy(shown)
        )
    }
}
