//! The id of a request, exactly as its sender spelled it.
//!
//! JSON-RPC lets an id be absent, null, a number or a string, and all four mean something else. All
//! are kept as text: `1`, `1.0`, `9007199254740993` and `"\u00e9"` must come back as they were
//! sent. Two strings are the same id when their unescaped texts are equal: agents on the Python SDK
//! answer `"é"` as `"\u00e9"`.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use super::Span;

/// An id inside a frame. Numbers and strings are the raw JSON text, quotes included.
#[derive(Clone, Copy, Debug)]
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

/// An id that outlives its frame, by default an absent one. Up to 40 bytes (a quoted UUID) need no
/// allocation.
#[derive(Clone, Default)]
pub struct IdBuf(SmallVec<[u8; 40]>);

impl<'a> Id<'a> {
    /// The id at a place of a text; absent without a place.
    #[must_use]
    pub fn at(place: Option<Span>, text: &'a [u8]) -> Self {
        place.map_or(Self::Absent, |place| Self::of_json(place.of(text)))
    }

    /// The id that a JSON value is, such as the `requestId` of a message about a request; absent
    /// when it cannot be an id.
    #[must_use]
    pub fn of_json(text: &'a [u8]) -> Self {
        match text.first() {
            Some(b'"') => Self::String(text),
            Some(b'-' | b'0'..=b'9') => Self::Number(text),
            Some(b'n') => Self::Null,
            _ => Self::Absent,
        }
    }
}

impl Id<'_> {
    /// Whether it is a number or a string, which an answer can be matched by.
    #[must_use]
    pub const fn is_value(&self) -> bool {
        matches!(self, Self::Number(_) | Self::String(_))
    }

    /// Keeps the id beyond its frame.
    #[must_use]
    pub fn to_owned(self) -> IdBuf {
        match self {
            Self::Absent => IdBuf::default(),
            id => IdBuf(SmallVec::from_slice(id.json())),
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

    /// The spelling that all spellings of the same id share: a string without unnecessary escapes.
    /// Numbers, and strings with a lone surrogate, are returned as they are spelled.
    #[must_use]
    pub fn canonical(&self) -> Cow<'_, [u8]> {
        match self {
            Self::String(text) if memchr::memchr(b'\\', text).is_some() => {
                serde_json::from_slice::<String>(text)
                    .and_then(|decoded| serde_json::to_vec(&decoded))
                    .map_or(Cow::Borrowed(*text), Cow::Owned)
            }
            _ => Cow::Borrowed(self.json()),
        }
    }

    /// Whether two numbers are equal after a conversion to doubles.
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
    /// The id as written in a frame.
    #[must_use]
    pub fn as_id(&self) -> Id<'_> {
        Id::of_json(&self.0)
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) | (Self::Null, Self::Null) => true,
            (Self::Number(one), Self::Number(other)) => one == other,
            (Self::String(_), Self::String(_)) => self.canonical() == other.canonical(),
            _ => false,
        }
    }
}

impl Eq for Id<'_> {}

impl Hash for Id<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The quotes tell a string from a number.
        state.write(&self.canonical());
    }
}

impl PartialEq for IdBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_id() == other.as_id()
    }
}

impl Eq for IdBuf {}

impl Hash for IdBuf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_id().hash(state);
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
