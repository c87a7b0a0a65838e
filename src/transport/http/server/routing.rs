//! Finds the stream of a message of the agent, and checks the session of a client's message.
//!
//! Answers follow their request. Requests and notifications of the agent follow the session they
//! name, once the client knows that session; until then they go on the connection's stream,
//! followed by the answer that names it, as over stdio. The answer to `session/load` or
//! `session/resume` goes on the stream that carried the session's history.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, Scanned, Scanner, named_session};

/// Longest session id that is tracked, in bytes.
pub(super) const SESSION_ID: usize = 1024;

/// Methods that need a session, as in both official servers.
const NEEDS_SESSION: [&str; 10] = [
    "session/cancel",
    "session/close",
    "session/delete",
    "session/fork",
    "session/load",
    "session/prompt",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
];

/// Methods whose result names a new session. It goes on the connection's stream, as do earlier
/// messages of that session.
const OPENS_SESSION: [&str; 2] = ["session/new", "session/fork"];

/// Methods by which the client enters an existing session. The session's messages before the
/// answer, its history, have to arrive before the answer.
const ENTERS_SESSION: [&str; 2] = ["session/load", "session/resume"];

/// The open requests of both sides.
#[derive(Debug)]
pub(super) struct Routing {
    /// Of the client: where the answer goes.
    pending: HashMap<IdBuf, Pending>,
    /// Of the agent: the session it belongs to.
    agent_requests: HashMap<IdBuf, Option<Box<str>>>,
    limit: usize,
    scanner: Scanner,
}

/// An open request of the client.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// The stream its answer goes on: a session's, or the connection's.
    pub(super) session: Option<Box<str>>,
    /// Whether its result names a new session.
    pub(super) opens: bool,
    /// Whether it enters the session, and the number of messages sent before it.
    pub(super) enters: Option<u64>,
    /// The hash of its message, to detect repeats.
    pub(super) hash: u64,
}

/// Where a message of the agent goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    /// The session whose stream it goes on; the connection's when there is none.
    pub(super) session: Option<Cow<'a, str>>,
    /// A session that it opens.
    pub(super) opened: Option<Cow<'a, str>>,
    /// It answers a request to enter the session, which came after this many messages.
    pub(super) entered: Option<u64>,
}

impl Routing {
    /// No open requests; `limits` bound the number of those of each side.
    pub(super) fn new(limits: Arc<Limits>) -> Self {
        Self {
            pending: HashMap::new(),
            agent_requests: HashMap::new(),
            limit: limits.in_flight,
            scanner: Scanner::new(limits),
        }
    }

    /// Where a message of the agent goes; `is_known` says whether the client knows a session.
    pub(super) fn outgoing<'a>(
        &mut self,
        frame: &'a mut Frame,
        is_known: impl Fn(&str) -> bool,
    ) -> Target<'a> {
        let connection = Target {
            session: None,
            opened: None,
            entered: None,
        };
        let Scanned::Message(envelope) = self.scanner.scan(frame) else {
            return connection;
        };
        let frame = &*frame;
        match envelope.kind {
            Kind::Request | Kind::Notification => {
                let session = session_in(&envelope, frame);
                if envelope.kind == Kind::Request && self.agent_requests.len() < self.limit {
                    let of = session.as_deref().map(Into::into);
                    self.agent_requests
                        .insert(envelope.id(frame).to_owned(), of);
                }
                Target {
                    session: session.filter(|session| is_known(session)),
                    ..connection
                }
            }
            Kind::Result | Kind::Error => {
                let Some(pending) = self.pending.remove(&envelope.id(frame).to_owned()) else {
                    return connection;
                };
                let opened = (pending.opens && envelope.kind == Kind::Result)
                    .then(|| named_session(frame, &envelope))
                    .flatten();
                Target {
                    session: pending.session.map(|session| Cow::Owned(session.into())),
                    opened,
                    entered: pending.enters,
                }
            }
        }
    }

    /// Records a message that was delivered to a client with one stream; returns the id of its
    /// request that this answers, which is free now.
    pub(super) fn delivered(&mut self, frame: &Frame) -> Option<IdBuf> {
        let mut frame = frame.clone();
        let Scanned::Message(envelope) = self.scanner.scan(&mut frame) else {
            return None;
        };
        let id = envelope.id(&frame).to_owned();
        match envelope.kind {
            Kind::Notification => None,
            Kind::Request => {
                if self.agent_requests.len() < self.limit {
                    self.agent_requests.insert(id, None);
                }
                None
            }
            Kind::Result | Kind::Error => self.pending.remove(&id).map(|_| id),
        }
    }

    /// The open request of the client with that id.
    pub(super) fn pending(&self, id: &IdBuf) -> Option<&Pending> {
        self.pending.get(id)
    }

    /// Records a request of the client; `false` when there are too many to track its answer.
    pub(super) fn remember(&mut self, id: IdBuf, pending: Pending) -> bool {
        let has_room = self.pending.len() < self.limit;
        if has_room {
            self.pending.insert(id, pending);
        }
        has_room
    }

    /// Whether the agent awaits an answer to that id; an error when the header does not fit it.
    pub(super) fn check_answer(
        &self,
        id: &IdBuf,
        header: Option<&str>,
    ) -> Result<bool, &'static str> {
        match (self.agent_requests.get(id), header) {
            (None, _) => Ok(false),
            // The official Rust client names no session with its answers.
            (Some(_), None) => Ok(true),
            (Some(Some(session)), Some(header)) if **session != *header => {
                Err("Acp-Session-Id is not the session of the request that this answers")
            }
            (Some(_), Some(_)) => Ok(true),
        }
    }

    /// Records an answer of the client.
    pub(super) fn answered(&mut self, id: &IdBuf) {
        self.agent_requests.remove(id);
    }
}

/// The session of a client's request or notification. One that is named in the header alone is used
/// for the stream of the answer; the message stays as it is, and whether it is valid without a
/// session is the agent's decision.
pub(super) fn session_of<'a>(
    frame: &'a Frame,
    envelope: &Envelope,
    header: Option<&'a str>,
) -> Result<Option<Cow<'a, str>>, &'static str> {
    let named_session = session_in(envelope, frame);
    let session = match (named_session, header) {
        (Some(named), Some(header)) if named != header => {
            return Err("Acp-Session-Id and params.sessionId differ");
        }
        (Some(named), _) => Some(named),
        (None, header) => header.map(Cow::Borrowed),
    };
    let method = envelope.method(frame);
    match &session {
        None if NEEDS_SESSION.contains(&&*method) => {
            Err("this method needs a session: Acp-Session-Id and params.sessionId")
        }
        Some(session) if session.len() > SESSION_ID => {
            Err("the session id is longer than 1024 bytes")
        }
        _ => Ok(session),
    }
}

/// The route of the answer to a client's request, which came after `pushed` messages.
pub(super) fn pending_of(
    frame: &Frame,
    envelope: &Envelope,
    session: Option<&str>,
    pushed: u64,
    hash: u64,
) -> Pending {
    let method = envelope.method(frame);
    let opens = OPENS_SESSION.contains(&&*method);
    let enters = ENTERS_SESSION.contains(&&*method);
    Pending {
        session: session.filter(|_| !opens).map(Into::into),
        opens,
        enters: enters.then_some(pushed),
        hash,
    }
}

/// The session a request or notification names. Those of JSON-RPC itself (`$/…`) name none.
fn session_in<'a>(envelope: &Envelope, frame: &'a Frame) -> Option<Cow<'a, str>> {
    // A cheap check of the first byte, which may also be an escape.
    let may_match = matches!(envelope.raw_method(frame).first(), Some(b'$' | b'\\'));
    if may_match && envelope.method(frame).starts_with("$/") {
        return None;
    }
    named_session(frame, envelope)
}
