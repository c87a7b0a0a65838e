//! Tracks which requests were answered.

use std::collections::{HashMap, HashSet};

use crate::jsonrpc::{Id, IdBuf, Kind, Side};
use crate::recording::{Message, RecordedEvent};

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) n: u64,
    pub(super) t: u64,
    pub(super) requester: Side,
    pub(super) method: String,
}

/// The requests of a conversation.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: HashMap<(Side, IdBuf), OpenRequest>,
    /// Ids of answered requests.
    done: HashSet<(Side, IdBuf)>,
}

impl Requests {
    /// Adds a message; returns whether it is a second answer to a request.
    pub(super) fn add(&mut self, event: &RecordedEvent, message: &Message) -> bool {
        let requester = match message.kind {
            Some(Kind::Request) => message.to.other(),
            Some(Kind::Result | Kind::Error) => message.to,
            _ => return false,
        };
        let id = message.id.as_deref().unwrap_or("null");
        let id = Id::of_json(id.as_bytes()).to_owned();
        if id == IdBuf::Null {
            return false;
        }
        let key = (requester, id);
        if message.kind != Some(Kind::Request) {
            if self.open.remove(&key).is_none() {
                return self.done.contains(&key);
            }
            self.done.insert(key);
            return false;
        }
        self.done.remove(&key);
        let request = OpenRequest {
            n: event.n,
            t: event.t,
            requester,
            method: message.method.clone().unwrap_or_default(),
        };
        self.open.insert(key, request);
        false
    }

    /// The requests without an answer, in order.
    pub(super) fn unanswered(&self) -> Vec<&OpenRequest> {
        let mut open: Vec<_> = self.open.values().collect();
        open.sort_by_key(|request| request.n);
        open
    }
}
