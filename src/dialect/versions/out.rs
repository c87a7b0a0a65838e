//! What a state does with a message: it writes into an [`Out`].

use std::fmt::Debug;
use std::time::Instant;

use super::policies::VersionPolicies;
use crate::message::Message;
use crate::object::object;
use crate::text;
use crate::translation::{DialectEvent, DialectNote};
use crate::tree::Node;
use jsonrpc::{IdBuf, Kind, Side};

/// The name of the table, which the rules of the states are reported under.
pub const V2_DIALECT: &str = "acp-v2";

/// JSON-RPC: the message is no valid request.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the method does not exist.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
/// JSON-RPC: the params are invalid.
pub(super) const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC: internal error.
pub(super) const INTERNAL_ERROR: i32 = -32603;
/// ACP: the request was cancelled.
pub(super) const CANCELLED: i32 = -32800;
/// ACP: the resource was not found.
pub(super) const NOT_FOUND: i32 = -32002;

/// The state of a conversation between peers of different versions.
pub(super) trait State: Debug + Send + Sync {
    /// The side that speaks v2.
    fn peer(&self) -> Side;
    /// The agent's result of `initialize`.
    fn initialized<'a>(&mut self, result: Message<'a>, out: &mut Out<'a>);
    /// A request.
    fn asked<'a>(&mut self, request: Message<'a>, out: &mut Out<'a>);
    /// Any other answer.
    fn answered<'a>(&mut self, answer: Message<'a>, out: &mut Out<'a>);
    /// `session/update` of the agent.
    fn updated<'a>(&mut self, update: Message<'a>, out: &mut Out<'a>);
    /// `session/cancel` of the client.
    fn cancelled<'a>(&mut self, note: Message<'a>, out: &mut Out<'a>);
    /// `$/cancel_request`, for the request with that id.
    fn withdrawn<'a>(&mut self, id: &IdBuf, note: Message<'a>, out: &mut Out<'a>);
    /// When [`State::expire`] is due.
    fn deadline(&self) -> Option<Instant>;
    /// Does what is due at `out.now`.
    fn expire(&mut self, out: &mut Out<'_>);
    /// The memory that takes what is remembered, in bytes.
    fn weight(&self) -> usize;
    /// Forgets what is known of sessions; see [`memory::forget`](crate::memory::forget).
    fn forget(&mut self, excess: &mut usize) -> usize;
}

/// Why a request is refused: the rule, the code, and the text.
pub(super) type Refusal = (&'static str, i32, String);

/// The output of one message or deadline.
#[derive(Debug)]
pub(super) struct Out<'a> {
    /// Who has sent the message.
    pub(super) from: Hop,
    pub(super) now: Instant,
    pub(super) policies: VersionPolicies,
    pub(super) sent: Vec<(Hop, Message<'a>)>,
    pub(super) notes: Vec<DialectNote>,
    /// The rules that changed something.
    pub(super) rules: Vec<&'static str>,
}

/// Where a message comes from, or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// The peer that speaks v2.
    Peer,
    /// The side that speaks v1.
    Other,
}

impl Hop {
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::Peer => Self::Other,
            Self::Other => Self::Peer,
        }
    }
}

impl<'a> Out<'a> {
    pub(super) const fn new(from: Hop, now: Instant, policies: VersionPolicies) -> Self {
        Self {
            from,
            now,
            policies,
            sent: Vec::new(),
            notes: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// Sends a message to the peer that speaks v2.
    pub(super) fn peer(&mut self, message: Message<'a>) {
        self.sent.push((Hop::Peer, message));
    }

    /// Sends a message to the side that speaks v1.
    pub(super) fn other(&mut self, message: Message<'a>) {
        self.sent.push((Hop::Other, message));
    }

    /// Passes on the message that is handled.
    pub(super) fn pass(&mut self, message: Message<'a>) {
        self.sent.push((self.from.opposite(), message));
    }

    /// Refuses the request that is handled.
    pub(super) fn refuse(&mut self, rule: &'static str, id: &IdBuf, code: i32, why: &str) {
        self.note(DialectEvent::Answered, rule, why);
        self.sent.push((self.from, error(id, code, why)));
    }

    /// Refuses a request of a method that the other side does not have.
    pub(super) fn unknown(&mut self, request: &Message<'_>) {
        let why = format!("the other side has no method {}", request.method);
        self.refuse("methods", &request.id, METHOD_NOT_FOUND, &why);
    }

    /// Names the rule that has converted something.
    pub(super) fn rule(&mut self, rule: &'static str) {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Reports something.
    pub(super) fn note(
        &mut self,
        what: DialectEvent,
        rule: &'static str,
        detail: impl Into<String>,
    ) {
        self.rule(rule);
        self.notes.push(DialectNote {
            what,
            rule: Some(format!("{V2_DIALECT}/{rule}")),
            detail: detail.into(),
        });
    }

    /// Reports what is dropped.
    pub(super) fn dropped(&mut self, rule: &'static str, what: impl Into<String>) {
        self.note(DialectEvent::Dropped, rule, what);
    }

    /// Reports what is made up, or stands for something that a version lacks.
    pub(super) fn emulated(&mut self, rule: &'static str, what: impl Into<String>) {
        self.note(DialectEvent::Emulated, rule, what);
    }
}

/// The result of a request.
pub(super) fn result<'a>(id: &IdBuf, body: Node<'a>) -> Message<'a> {
    Message::new(Kind::Result, id.clone(), "", body)
}

/// The error of a request, in the name of the bridge.
pub(super) fn error(id: &IdBuf, code: i32, why: &str) -> Message<'static> {
    let body = object! { "code": code, "message": format!("acp-relay: {why}") };
    Message::new(Kind::Error, id.clone(), "", body)
}

/// The code of an error; none for other messages.
pub(super) fn error_code(answer: &Message<'_>) -> Option<i32> {
    let code = answer.body.value("code")?;
    let code = text::integer(&code.json())?.parse().ok()?;
    (answer.kind == Kind::Error).then_some(code)
}
