//! Where the parts of one JSON-RPC message are in its frame.
//!
//! An envelope is a set of offsets: it borrows nothing, and `scan` makes it without an allocation.

use std::borrow::Cow;

use super::text::{member_text, same_name, string, unescaped};
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

impl Kind {
    /// The word for it in recordings and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
        }
    }

    /// The kind with that name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::Request, Self::Notification, Self::Result, Self::Error]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }

    /// Whether it has `result` or `error`.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Result | Self::Error)
    }
}

/// Where the parts of one message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What the message is.
    pub kind: Kind,
    /// Where its id is, the quotes of a string included.
    pub id: Option<Span>,
    /// The method's text between its quotes, still escaped. Requests and notifications have one.
    pub method: Option<Span>,
    /// The value of `params`, `result` or `error`; `None` when `params` is left out.
    pub body: Option<Span>,
    /// Where the members of the body are, when it is an object with few of them.
    pub index: Option<MemberIndex>,
    /// How many strings there are, names included. Names of the message's own members are only
    /// counted when their spelling is unusual, so this is for comparing messages that begin alike.
    pub strings: u32,
    /// Whether there is a member `jsonrpc`.
    pub jsonrpc: bool,
    /// Whether there are members that JSON-RPC does not define.
    pub unknown_members: bool,
}

impl Envelope {
    /// The id, in the frame this envelope was made from.
    #[must_use]
    pub fn id<'a>(&self, frame: &'a Frame) -> Id<'a> {
        Id::at(self.id, frame.as_bytes())
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
        same_name(self.raw_method(frame), name)
    }

    /// The same message with another id and all other bytes unchanged.
    #[must_use]
    pub fn with_id(&self, frame: &Frame, id: Id<'_>) -> Frame {
        let Some(at) = self.id.filter(|_| self.id(frame).is_value()) else {
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

    /// The value of `params`, `result` or `error`, as spelled.
    #[must_use]
    pub fn body<'a>(&self, frame: &'a Frame) -> Option<&'a [u8]> {
        self.body.map(|span| span.of(frame.as_bytes()))
    }
}

/// The session that the body of a message names, if it does.
#[must_use]
pub fn named_session<'a>(frame: &'a Frame, at: &Envelope) -> Option<Cow<'a, str>> {
    const NAME: &str = "sessionId";
    let Some(index) = &at.index else {
        return member_text(at.body(frame)?, NAME);
    };
    let text = frame.as_bytes();
    let mut members = index.members();
    let session = members.find(|member| member.has_name(NAME, text))?;
    string(session.value.of(text))
}
