//! Maps the ids of a client's requests across its connections.
//!
//! Every client counts from 0 again when it reconnects, while the agent may still work on requests
//! of the connection before. So from the second connection on, requests go to the agent under ids
//! of the relay, and their answers to the client under its own.

use jsonrpc::{Id, IdBuf, PendingRequests};

/// The relay's first id: far from what clients count to, and a 32-bit number, which is all that
/// some agents support.
const FIRST_ID: u32 = 1 << 30;

/// The client's requests that the agent has not answered.
#[derive(Debug)]
pub(super) struct RequestIds {
    open: PendingRequests<OpenRequest>,
    count: u32,
}

/// A request of a client.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The connection it came over.
    pub(super) connection: u32,
    /// Its id, as the client spelled it.
    pub(super) id: IdBuf,
    /// Its kind.
    pub(super) kind: RequestKind,
}

/// What has to be known of a client's request when it is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Initialize,
    /// The answer names a new session.
    NewSession,
    /// This session, from the agent's own storage.
    OldSession(String),
    /// This session is closed or deleted.
    EndOfSession(String),
    /// A turn of this session.
    Prompt(String),
    Other,
}

impl Default for RequestIds {
    /// The conversation limits the open requests: it answers what is too much.
    fn default() -> Self {
        Self {
            open: PendingRequests::new(usize::MAX),
            count: 0,
        }
    }
}

impl RequestIds {
    /// Stores a request and returns the id for the agent.
    pub(super) fn add(&mut self, connection: u32, id: Id<'_>, what: RequestKind) -> IdBuf {
        let request = OpenRequest {
            connection,
            id: id.to_owned(),
            kind: what,
        };
        let ours = if connection == 0 {
            request.id.clone()
        } else {
            self.count = (self.count + 1) % FIRST_ID;
            Id::Number((FIRST_ID + self.count).to_string().as_bytes()).to_owned()
        };
        // The conversation answers a request whose id is in use.
        let _ = self.open.insert(ours.as_id(), request);
        ours
    }

    /// Removes the request that the agent answers under `id`.
    pub(super) fn remove(&mut self, id: Id<'_>) -> Option<OpenRequest> {
        self.open.remove(id).map(|(_, request)| request)
    }

    /// The agent's id for an open request of `connection`.
    pub(super) fn agent_id(&self, connection: u32, id: &IdBuf) -> Option<&IdBuf> {
        let matches = |open: &OpenRequest| open.connection == connection && open.id == *id;
        let mut all = self.open.iter();
        all.find(|(_, open)| matches(open)).map(|(ours, _)| ours)
    }

    /// Whether the agent is working on a prompt: on one of that session, if one is given.
    pub(super) fn in_turn(&self, session: Option<&str>) -> bool {
        let mut all = self.open.iter();
        all.any(|(_, open)| match &open.kind {
            RequestKind::Prompt(of) => session.is_none_or(|session| session == of),
            _ => false,
        })
    }
}
