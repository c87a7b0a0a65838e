//! The live agent that gets the requests that were not recorded.
//!
//! It is sent the client's own `initialize` before any request; the sessions it opens belong to it.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::names::with_id;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Envelope, Frame, Id, Kind, Limits, PendingRequests};

/// The id of the `initialize` that is sent to the live agent.
const INITIALIZE_ID: &[u8] = b"\"replay-introduction\"";

/// The live agent.
#[derive(Debug)]
pub(super) struct LiveAgent {
    /// The client's `initialize`, until it is forwarded.
    pub(super) initialize: Option<Frame>,
    /// Requests of the client that were forwarded to it.
    pub(super) open: PendingRequests<()>,
    pub(super) sessions: HashSet<String>,
    /// What is to be sent to it.
    pub(super) queue: VecDeque<Frame>,
}

impl Default for LiveAgent {
    fn default() -> Self {
        Self {
            initialize: None,
            open: PendingRequests::new(Limits::default().in_flight),
            sessions: HashSet::new(),
            queue: VecDeque::new(),
        }
    }
}

impl LiveAgent {
    /// Whether a message is about a session of the live agent.
    pub(super) fn owns(&self, body: &Value) -> bool {
        let session = body.get("sessionId").and_then(Value::as_str);
        session.is_some_and(|session| self.sessions.contains(session))
    }

    /// Forwards a message of the client. Returns the answer to a request that cannot be forwarded.
    pub(super) fn forward(&mut self, frame: &Frame, at: &Envelope) -> Option<Frame> {
        let id = at.id(frame);
        if at.kind == Kind::Request && self.open.insert(id, ()).is_err() {
            let reason = Reason::new(reply::OVERLOADED, "this id, or too many, are in use");
            return Some(reply::error(id, &reason));
        }
        if let Some(initialize) = self.initialize.take()
            && at.method(frame) != "initialize"
        {
            let initialize = with_id(&initialize, Id::String(INITIALIZE_ID));
            self.queue.push_back(initialize);
        }
        self.queue.push_back(frame.clone());
        None
    }

    /// The live agent is gone: the answers to its requests.
    pub(super) fn lose(&mut self) -> impl Iterator<Item = Frame> {
        let reason = Reason::new(
            reply::PEER_LOST,
            "the live agent behind the recording is gone",
        );
        let open = self.open.drain();
        open.map(move |(id, ())| reply::error(id.as_id(), &reason))
    }
}
