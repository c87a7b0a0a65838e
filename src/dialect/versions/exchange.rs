//! What a state writes into while it handles one message.

use std::time::Instant;

use super::policies::VersionPolicies;
use crate::dialect::message::Message;
use crate::dialect::translation::{DialectEvent, DialectNote};
use crate::dialect::tree::Node;
use crate::jsonrpc::{IdBuf, Kind};

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

/// The output of one message or deadline.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    pub(super) now: Instant,
    pub(super) policies: VersionPolicies,
    pub(super) sent: Vec<(Hop, Message<'a>)>,
    pub(super) notes: Vec<DialectNote>,
    /// The rules that changed something.
    pub(super) rules: Vec<&'static str>,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// To the peer that speaks v2.
    Peer,
    /// To the side that speaks v1.
    Other,
}

impl<'a> Exchange<'a> {
    pub(super) const fn new(now: Instant, policies: VersionPolicies) -> Self {
        Self {
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

    /// Sends a message there.
    pub(super) fn send(&mut self, hop: Hop, message: Message<'a>) {
        self.sent.push((hop, message));
    }

    /// Names the rule that has converted something.
    pub(super) fn rule(&mut self, rule: &'static str) {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Reports what was dropped, made up or emulated.
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
}

/// The result of a request.
pub(super) fn result<'a>(id: &IdBuf, body: Node<'a>) -> Message<'a> {
    Message::new(Kind::Result, id.clone(), "", body)
}

/// The error of a request; `message` names the bridge.
pub(super) fn error(id: &IdBuf, code: i32, message: &str) -> Message<'static> {
    let code = Node::owned(code.to_string().into_bytes());
    let body = Node::object(vec![("code", code), ("message", Node::string(message))]);
    Message::new(Kind::Error, id.clone(), "", body)
}
