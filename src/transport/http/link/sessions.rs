//! Finds the session of a message, for the session header of HTTP.
//!
//! A message names its session in `params.sessionId`; an answer names none, so the agent's requests
//! are remembered until they are answered. Requests of the client are remembered, too: when a
//! session's stream ends, they are failed.

use std::collections::HashMap;
use std::sync::Arc;

use hashlink::LinkedHashMap;
use hyper::header::HeaderValue;
use tokio::sync::watch;

use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, named_session};

/// Requests of the agent that are remembered. Beyond it: the oldest is forgotten, and its answer is
/// sent without a session.
const MAX_REQUESTS: usize = 4096;
/// Longest session id that fits a header, in bytes. A longer one is not sent.
const MAX_ID: usize = 1024;

/// A session's id.
pub(super) type Session = Arc<str>;

/// The sessions of one link.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Streams that are open or being opened; the value is true once requests need not wait for it.
    pub(super) streams: HashMap<Session, watch::Receiver<bool>>,
    /// Open requests of the agent, the oldest first.
    agent_requests: LinkedHashMap<IdBuf, Session>,
    /// Open requests of the client.
    client_requests: HashMap<IdBuf, Session>,
}

impl Sessions {
    /// The session of a message to the agent. An answer closes the agent's request.
    pub(super) fn of_outgoing(&mut self, frame: &Frame, at: &Envelope) -> Option<Session> {
        match at.kind {
            Kind::Result | Kind::Error => self.agent_requests.remove(&at.id(frame).to_owned()),
            Kind::Notification => session_of(frame, at),
            Kind::Request => {
                let session = session_of(frame, at)?;
                let id = at.id(frame).to_owned();
                self.client_requests.insert(id, Arc::clone(&session));
                Some(session)
            }
        }
    }

    /// Remembers an agent's request that came on the stream of a session, or on that of the
    /// connection.
    pub(super) fn remember(&mut self, frame: &Frame, at: &Envelope, stream: Option<&Session>) {
        let session = session_of(frame, at).or_else(|| stream.cloned());
        let Some(session) = session else { return };
        let id = at.id(frame).to_owned();
        self.agent_requests.insert(id, session);
        if self.agent_requests.len() > MAX_REQUESTS {
            self.agent_requests.pop_front();
        }
    }

    /// Removes an answered request of the client; whether it was open.
    pub(super) fn answered(&mut self, id: &IdBuf) -> bool {
        self.client_requests.remove(id).is_some()
    }

    /// Removes and returns the client's open requests in a session.
    pub(super) fn take_requests(&mut self, session: &Session) -> Vec<IdBuf> {
        let of_it = self.client_requests.extract_if(|_, of| of == session);
        of_it.map(|(id, _)| id).collect()
    }
}

/// The session that a message's `params` or `result` names.
pub(super) fn session_of(frame: &Frame, at: &Envelope) -> Option<Session> {
    let id = named_session(frame, at)?;
    (!id.is_empty()).then(|| Session::from(&*id))
}

/// A session as a header value, if it fits.
pub(super) fn header(session: &Session) -> Option<HeaderValue> {
    HeaderValue::from_bytes(session.as_bytes())
        .ok()
        .filter(|value| value.len() <= MAX_ID)
}
