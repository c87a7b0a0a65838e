//! Where the parts of one JSON-RPC message are in its frame.
//!
//! An envelope is a set of offsets: it borrows nothing, and `scan` makes it without an allocation.

use std::borrow::Cow;

use super::{Frame, Id, MemberIndex, Span};

/// The kinds of messages in JSON-RPC 2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `method` and `id`: it has to be answered.
    Request,
    /// `method` alone.
    Notification,
    /// An answer with `result`.
    Result,
    /// An answer with `error`, or an error report without an id.
    Error,
}

/// Where the id is; the four forms of an id are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdAt {
    /// There is no `id` member.
    #[default]
    Absent,
    /// `"id": null`.
    Null,
    /// A number.
    Number(Span),
    /// A string, quotes included.
    String(Span),
}

/// The first bytes of a message, when other messages read by the same scanner begin with the same
/// bytes.
///
/// Everything in them, the method and some of the members, is the same in all of these messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prefix {
    /// A number that no other prefix has; 0 when there is no prefix, or the method is not in it.
    pub number: u64,
    /// Its length, in bytes.
    pub bytes: u32,
    /// How many members of the index have their names in it.
    pub members: u8,
}

impl Kind {
    /// Whether it has `result` or `error`.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Result | Self::Error)
    }
}

/// All are equal, so that comparing envelopes ignores their prefixes.
impl PartialEq for Prefix {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Prefix {}

/// Where the parts of one message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What the message is.
    pub kind: Kind,
    /// Where its id is.
    pub id: IdAt,
    /// The method's text between its quotes, still escaped. Requests and notifications have one.
    pub method: Option<Span>,
    /// The value of `params`, `result` or `error`; `None` when `params` is left out.
    pub body: Option<Span>,
    /// Where the members of the body are, when it is an object with few of them.
    pub index: Option<MemberIndex>,
    /// Whether there is a member `jsonrpc`.
    pub jsonrpc: bool,
    /// Whether there are members that JSON-RPC does not define.
    pub unknown_members: bool,
    /// The prefix it shares with other messages.
    pub prefix: Prefix,
}

impl Envelope {
    /// The id, in the frame this envelope was made from.
    #[must_use]
    pub fn id<'a>(&self, frame: &'a Frame) -> Id<'a> {
        self.id.of(frame.as_bytes())
    }

    /// The method as spelled between its quotes.
    #[must_use]
    pub fn raw_method<'a>(&self, frame: &'a Frame) -> &'a [u8] {
        self.method
            .map_or(&b""[..], |span| span.of(frame.as_bytes()))
    }

    /// The method, unescaped (`session\/prompt` is what some encoders write), or `""`.
    #[must_use]
    pub fn method<'a>(&self, frame: &'a Frame) -> Cow<'a, str> {
        unescaped(self.raw_method(frame))
    }

    /// Whether that is its method, with or without escapes.
    #[must_use]
    pub fn has_method(&self, frame: &Frame, name: &str) -> bool {
        let raw = self.raw_method(frame);
        // Escapes make it longer.
        raw == name.as_bytes() || (raw.len() > name.len() && self.method(frame) == name)
    }

    /// The same message with another id and all other bytes unchanged.
    #[must_use]
    pub fn with_id(&self, frame: &Frame, id: Id<'_>) -> Frame {
        let (IdAt::Number(at) | IdAt::String(at)) = self.id else {
            return frame.clone();
        };
        let text = frame.as_bytes();
        Frame::from(
            [
                &text[..at.start as usize],
                id.json(),
                &text[at.end as usize..],
            ]
            .concat(),
        )
    }

    /// Whether all indexed members have their names in the message's prefix.
    pub(crate) fn ends_in_prefix(&self) -> bool {
        let index = self.index.as_ref();
        self.prefix.number != 0 && index.is_some_and(|index| index.count() == self.prefix.members)
    }

    /// The envelope for a text in which the value at `place` is `len` bytes long.
    pub(crate) fn resized(&self, place: Span, len: u32) -> Self {
        let moved = |span: Span| span.resized(place, len);
        Self {
            id: match self.id {
                IdAt::Number(span) => IdAt::Number(moved(span)),
                IdAt::String(span) => IdAt::String(moved(span)),
                none => none,
            },
            method: self.method.map(moved),
            body: self.body.map(moved),
            index: self.index.map(|index| index.resized(place, len)),
            ..*self
        }
    }

    /// The value of `params`, `result` or `error`, as spelled.
    #[must_use]
    pub fn body<'a>(&self, frame: &'a Frame) -> Option<&'a [u8]> {
        self.body.map(|span| span.of(frame.as_bytes()))
    }
}

impl IdAt {
    /// The id, in the text it was found in.
    #[must_use]
    pub fn of(self, text: &[u8]) -> Id<'_> {
        match self {
            Self::Absent => Id::Absent,
            Self::Null => Id::Null,
            Self::Number(span) => Id::Number(span.of(text)),
            Self::String(span) => Id::String(span.of(text)),
        }
    }
}

/// A method's name, from the text between its quotes.
pub(crate) fn unescaped(raw: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw).is_some() {
        let quoted = [b"\"", raw, b"\""].concat();
        if let Ok(text) = serde_json::from_slice::<String>(&quoted) {
            return Cow::Owned(text);
        }
    }
    String::from_utf8_lossy(raw)
}
