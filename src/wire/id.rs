//! The id of a request, exactly as its sender spelled it.
//!
//! JSON-RPC lets an id be absent, null, a number or a string, and all four mean something else.
//! Numbers are kept as text: `1`, `1.0` and `9007199254740993` must come back as they were sent.
//! Not here: which requests are in flight (see `core::pending`).

use std::fmt;

use smallvec::SmallVec;

/// An id inside a frame. Numbers and strings are the raw JSON text, quotes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Id<'a> {
    /// There is no `id` member.
    Absent,
    /// `"id": null`.
    Null,
    /// A number, as spelled.
    Number(&'a [u8]),
    /// A string, as spelled, with its quotes.
    String(&'a [u8]),
}

/// An id that outlives its frame. Up to 40 bytes (a quoted UUID) need no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum IdBuf {
    /// There is no `id` member.
    Absent,
    /// `"id": null`.
    Null,
    /// A number, as spelled.
    Number(SmallVec<[u8; 40]>),
    /// A string, as spelled, with its quotes.
    String(SmallVec<[u8; 40]>),
}

impl Id<'_> {
    /// Keeps the id beyond its frame.
    #[must_use]
    pub fn to_owned(self) -> IdBuf {
        match self {
            Self::Absent => IdBuf::Absent,
            Self::Null => IdBuf::Null,
            Self::Number(text) => IdBuf::Number(SmallVec::from_slice(text)),
            Self::String(text) => IdBuf::String(SmallVec::from_slice(text)),
        }
    }

    /// The JSON text to answer with; an absent id is answered with `null` (JSON-RPC 2.0, §5).
    #[must_use]
    pub const fn json(&self) -> &[u8] {
        match self {
            Self::Absent | Self::Null => b"null",
            Self::Number(text) | Self::String(text) => text,
        }
    }

    /// Whether two numbers are the same once a program that keeps numbers as doubles has had them.
    ///
    /// Agents written in JavaScript answer 9007199254740993 with ...992, and 1.0 with 1.
    #[must_use]
    pub fn same_double(&self, other: &Self) -> bool {
        let double = |id: &Self| match id {
            Self::Number(text) => std::str::from_utf8(text).ok()?.parse::<f64>().ok(),
            _ => None,
        };
        matches!((double(self), double(other)), (Some(a), Some(b)) if a == b)
    }
}

impl IdBuf {
    /// The id as it would stand in a frame.
    #[must_use]
    pub fn as_id(&self) -> Id<'_> {
        match self {
            Self::Absent => Id::Absent,
            Self::Null => Id::Null,
            Self::Number(text) => Id::Number(text),
            Self::String(text) => Id::String(text),
        }
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("(no id)"),
            _ => f.write_str(&String::from_utf8_lossy(self.json())),
        }
    }
}

impl fmt::Debug for IdBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdBuf({})", self.as_id())
    }
}
