//! Finds the session of a message, for the session header of HTTP.
//!
//! A message names its session in `params.sessionId`; an answer names none, so the agent's requests
//! are remembered until they are answered. Requests of the client are remembered, too: when a
//! session's stream ends, they are failed.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::header::HeaderValue;
use tokio::sync::watch;

use jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, PendingRequests, named_session};

/// Longest session id that fits a header, in bytes. A longer one is not sent.
const MAX_ID: usize = 1024;

/// A session's id.
pub(super) type Session = Arc<str>;

/// The sessions of one link.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Streams that are open or being opened; the value is true once requests need not wait for it.
    pub(super) streams: HashMap<Session, watch::Receiver<bool>>,
    /// Those of the agent. The answer to one that has no room is sent without a session.
    agent_requests: PendingRequests<Session>,
    /// Those of the client; one that names no session has an empty one.
    pub(super) client_requests: PendingRequests<Session>,
}

impl Sessions {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            streams: HashMap::new(),
            agent_requests: PendingRequests::new(limits.in_flight),
            client_requests: PendingRequests::new(limits.in_flight),
        }
    }

    /// The session of a message to the agent. An answer closes the agent's request.
    pub(super) fn of_outgoing(&mut self, frame: &Frame, at: &Envelope) -> Option<Session> {
        if at.kind.is_answer() {
            return Some(self.agent_requests.remove(at.id(frame))?.1);
        }
        let session = session_of(frame, at);
        if at.kind == Kind::Request {
            let named = session.clone().unwrap_or_default();
            let _ = self.client_requests.insert(at.id(frame), named);
        }
        session
    }

    /// Whether no request is open, of either side.
    pub(super) fn is_idle(&self) -> bool {
        self.client_requests.is_empty() && self.agent_requests.is_empty()
    }

    /// Remembers an agent's request that came on the stream of a session, or on that of the
    /// connection.
    pub(super) fn remember(&mut self, frame: &Frame, at: &Envelope, stream: Option<&Session>) {
        if let Some(session) = session_of(frame, at).or_else(|| stream.cloned()) {
            let _ = self.agent_requests.insert(at.id(frame), session);
        }
    }

    /// Removes and returns the client's open requests in a session.
    pub(super) fn take_requests(&mut self, session: &Session) -> Vec<IdBuf> {
        let mut taken = Vec::new();
        self.client_requests.retain(|id, of| {
            let other = of != session;
            if !other {
                taken.push(id.clone());
            }
            other
        });
        taken
    }
}

/// The session that a message's `params` or `result` names.
pub(super) fn session_of(frame: &Frame, at: &Envelope) -> Option<Session> {
    let id = named_session(frame, at)?;
    (!id.is_empty()).then(|| Session::from(&*id))
}

/// A session as a header value, if it fits.
pub(super) fn header(session: &Session) -> Option<HeaderValue> {
    let value = HeaderValue::from_bytes(session.as_bytes()).ok();
    value.filter(|value| value.len() <= MAX_ID)
}
