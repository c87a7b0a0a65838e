//! Finds the stream of a message of the agent, and checks the session of a client's message.
//!
//! Answers follow their request. Requests and notifications of the agent follow the session they
//! name, once the client knows that session; until then they go on the connection's stream,
//! followed by the answer that names it, as over stdio. The answer to `session/load` or
//! `session/resume` goes on the stream that carried the session's history.

use std::borrow::Cow;
use std::sync::Arc;

use super::streams::Streams;
use crate::http::port::refusal::Refusal;
use jsonrpc::{
    Envelope, Frame, Id, IdBuf, Kind, Limits, PendingRequests, Scanned, Scanner, named_session,
};

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
    pub(super) client_requests: PendingRequests<ClientRequest>,
    /// The session of each.
    agent_requests: PendingRequests<Option<Box<str>>>,
    scanner: Scanner,
}

/// An open request of the client.
#[derive(Clone, Debug)]
pub(super) struct ClientRequest {
    /// The hash of its message, to detect repeats.
    pub(super) hash: u64,
    /// The session on whose stream its answer goes; the connection's stream if there is none.
    session: Option<Arc<str>>,
    /// Whether its result names a new session.
    opens: bool,
    /// Whether it enters the session, and the number of messages sent before it.
    enters: Option<u64>,
}

impl Routing {
    /// No open requests; `limits` bound the number of those of each side.
    pub(super) fn new(limits: Arc<Limits>) -> Self {
        Self {
            client_requests: PendingRequests::new(limits.in_flight),
            agent_requests: PendingRequests::new(limits.in_flight),
            scanner: Scanner::new(limits),
        }
    }

    /// The session on whose stream a message of the agent goes, if it does not go on the
    /// connection's, and the id of the request that it answers.
    pub(super) fn outgoing(
        &mut self,
        frame: &mut Frame,
        streams: &mut Streams,
    ) -> (Option<Arc<str>>, Option<IdBuf>) {
        match self.scanner.scan(frame) {
            Scanned::Message(envelope) if envelope.kind.is_answer() => {
                let answered = self.client_requests.remove(envelope.id(frame));
                let (id, request) = answered.unzip();
                let session = request.and_then(|one| one.answered(frame, &envelope, streams));
                (session, id)
            }
            Scanned::Message(envelope) => {
                let session = session_in(&envelope, frame);
                if envelope.kind == Kind::Request {
                    let of = session.as_deref().map(Into::into);
                    // The answer to one that has no room is passed on without checks.
                    let _ = self.agent_requests.insert(envelope.id(frame), of);
                }
                let known = session.and_then(|session| streams.known(&session));
                (known, None)
            }
            Scanned::Batch | Scanned::Invalid(_) => (None, None),
        }
    }

    /// Records a request of the client, and where its answer goes.
    pub(super) fn incoming(
        &mut self,
        frame: &Frame,
        envelope: &Envelope,
        session: Option<&str>,
        hash: u64,
        streams: &mut Streams,
    ) {
        let method = envelope.method(frame);
        let opens = OPENS_SESSION.contains(&&*method);
        let enters = ENTERS_SESSION.contains(&&*method);
        let request = ClientRequest {
            hash,
            session: session.filter(|_| !opens).map(Into::into),
            opens,
            enters: enters.then_some(streams.pushed),
        };
        let stored = self.client_requests.insert(envelope.id(frame), request);
        // The answer to one that has no room goes on the connection's stream.
        if let Some(session) = session.filter(|_| enters && stored.is_ok()) {
            streams.enter(session);
        }
    }

    /// Whether the agent awaits an answer to that id, which it has then.
    ///
    /// # Errors
    /// When the header names another session.
    pub(super) fn answer(&mut self, id: Id<'_>, header: Option<&str>) -> Result<bool, Refusal> {
        // The official Rust client names no session with its answers.
        if let (Some(Some(session)), Some(header)) = (self.agent_requests.get(id), header)
            && **session != *header
        {
            return Err(Refusal::bad_request(
                "Acp-Session-Id is not the session of the request that this answers",
            ));
        }
        Ok(self.agent_requests.remove(id).is_some())
    }
}

impl ClientRequest {
    /// The session on whose stream its answer goes.
    fn answered(
        self,
        answer: &Frame,
        envelope: &Envelope,
        streams: &mut Streams,
    ) -> Option<Arc<str>> {
        if self.opens
            && envelope.kind == Kind::Result
            && let Some(opened) = named_session(answer, envelope)
        {
            streams.mark_known(&opened);
        }
        let (session, since) = (self.session?, self.enters);
        let own = since.is_none_or(|since| streams.has_history(&session, since));
        own.then_some(session)
    }
}

/// The session of a client's request or notification. One that is named in the header alone is used
/// for the stream of the answer; the message stays as it is, and whether it is valid without a
/// session is the agent's decision.
pub(super) fn session_of<'a>(
    frame: &'a Frame,
    envelope: &Envelope,
    header: Option<&'a str>,
) -> Result<Option<Cow<'a, str>>, Refusal> {
    let named = session_in(envelope, frame);
    let differs = header.is_some_and(|header| named.as_ref().is_some_and(|named| named != header));
    let session = named.or_else(|| header.map(Cow::Borrowed));
    let method = envelope.method(frame);
    let why = match &session {
        _ if differs => "Acp-Session-Id and params.sessionId differ",
        None if NEEDS_SESSION.contains(&&*method) => {
            "this method needs a session: Acp-Session-Id and params.sessionId"
        }
        Some(session) if session.len() > SESSION_ID => "the session id is longer than 1024 bytes",
        _ => return Ok(session),
    };
    Err(Refusal::bad_request(why))
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
