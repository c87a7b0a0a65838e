//! State of the live agent that gets the requests that were not recorded.
//!
//! It is sent the client's own `initialize` before any request; the sessions it opens belong to it.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::ids::with_id;
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Envelope, Frame, FrameError, Id, IdBuf, Kind, Limits, Role, Scanned, scan};
use crate::recording::surrogates::parse_json;

/// The id of the `initialize` that is sent to the live agent.
const INITIALIZE_ID: &[u8] = b"\"replay-introduction\"";

/// The live agent.
#[derive(Debug, Default)]
pub(super) struct LiveAgent {
    /// The client's `initialize`, until it is forwarded.
    initialize: Option<Frame>,
    /// Requests of the client that were forwarded to it.
    open: HashSet<IdBuf>,
    /// Its requests to the client: the id the client knows, and the original id.
    pending: HashMap<IdBuf, IdBuf>,
    count: u64,
    sessions: HashSet<String>,
    to_client: VecDeque<Frame>,
    to_agent: VecDeque<Frame>,
}

impl LiveAgent {
    pub(super) fn backlog(&self) -> usize {
        self.to_client.len() + self.to_agent.len()
    }

    /// Whether it has requests to answer.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn for_client(&mut self) -> Option<Frame> {
        self.to_client.pop_front()
    }

    pub(super) fn for_agent(&mut self) -> Option<Frame> {
        self.to_agent.pop_front()
    }

    /// Stores the client's `initialize`.
    pub(super) fn set_initialize(&mut self, initialize: &Frame) {
        self.initialize = Some(initialize.clone());
    }

    /// Whether a message is about a session of the live agent.
    pub(super) fn owns(&self, body: &Value) -> bool {
        let session = body.get("sessionId").and_then(Value::as_str);
        session.is_some_and(|session| self.sessions.contains(session))
    }

    /// Whether the client has a request of it with this id.
    pub(super) fn has_pending(&self, id: &IdBuf) -> bool {
        self.pending.contains_key(id)
    }

    /// Forwards a message of the client.
    pub(super) fn forward(&mut self, frame: &Frame, at: &Envelope) {
        if let Some(initialize) = self.initialize.take()
            && at.method(frame) != "initialize"
        {
            let initialize = with_id(&initialize, Id::String(INITIALIZE_ID));
            self.to_agent.push_back(initialize);
        }
        if at.kind == Kind::Request {
            self.open.insert(at.id(frame).to_owned());
        }
        self.to_agent.push_back(frame.clone());
    }

    /// Forwards the client's answer, if it is one to the live agent.
    pub(super) fn answer(&mut self, id: &IdBuf, frame: &Frame, at: &Envelope) -> bool {
        let Some(own) = self.pending.remove(id) else {
            return false;
        };
        self.to_agent.push_back(at.with_id(frame, own.as_id()));
        true
    }

    /// Reports to the live agent that the client's answer is invalid, if it is one to it.
    pub(super) fn answer_invalid(&mut self, error: &FrameError) -> bool {
        let Some(own) = self.pending.remove(&error.id) else {
            return false;
        };
        let reason = Reason::of_fault(&error.fault);
        self.to_agent.push_back(reply::error(own.as_id(), &reason));
        true
    }

    /// The live agent is gone: its requests are answered with errors.
    pub(super) fn lose(&mut self) {
        let reason = Reason::new(
            reply::PEER_LOST,
            "the live agent behind the recording is gone",
        );
        for id in self.open.drain() {
            self.to_client.push_back(reply::error(id.as_id(), &reason));
        }
        self.pending.clear();
    }

    /// Handles a frame of the live agent.
    pub(super) fn receive(&mut self, frame: &Frame) {
        let at = match scan(frame, &Limits::default()) {
            Scanned::Message(at) => at,
            Scanned::Invalid(error)
                if error.role == Some(Role::Answer) && self.open.remove(&error.id) =>
            {
                // Without an answer the client would wait for ever.
                let reason = Reason::of_fault(&error.fault);
                self.to_client
                    .push_back(reply::error(error.id.as_id(), &reason));
                return;
            }
            // So would the agent.
            Scanned::Invalid(error)
                if error.role == Some(Role::Call) && error.id != IdBuf::Absent =>
            {
                self.to_agent.push_back(reply::frame_error(&error));
                return;
            }
            Scanned::Batch => {
                self.to_agent.push_back(reply::batch());
                return;
            }
            Scanned::Invalid(_) => return,
        };
        let id = at.id(frame).to_owned();
        match at.kind {
            Kind::Notification => self.to_client.push_back(frame.clone()),
            Kind::Request => {
                self.count += 1;
                let name = format!("\"replay-live-{}\"", self.count);
                let new_id = Id::String(name.as_bytes());
                self.pending.insert(new_id.to_owned(), id);
                self.to_client.push_back(at.with_id(frame, new_id));
            }
            Kind::Result | Kind::Error => {
                if !self.open.remove(&id) {
                    // The answer to our `initialize`, or to no request.
                    return;
                }
                let body = at.body(frame).and_then(parse_json).unwrap_or_default();
                if let Some(session) = body.get("sessionId").and_then(Value::as_str) {
                    self.sessions.insert(session.to_owned());
                }
                self.to_client.push_back(frame.clone());
            }
        }
    }
}
