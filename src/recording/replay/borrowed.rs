//! The live agent that has what was never recorded.
//!
//! It is introduced with the client's own `initialize` before it is asked anything; sessions that
//! it opens are its own. Not here: the link to it (see `transport::replay`).

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::ids::with_id;
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Envelope, Flaw, Frame, Id, IdBuf, Kind, Limits, Role, Shape, scan};
use crate::recording::surrogates::tree;

/// The id of the `initialize` that introduces the client.
const INTRODUCTION: &[u8] = b"\"replay-introduction\"";

/// What is known of the live agent.
#[derive(Debug, Default)]
pub(super) struct Borrowed {
    /// The client's `initialize`, until it was passed on.
    introduction: Option<Frame>,
    /// Requests of the client that it has.
    open: HashSet<IdBuf>,
    /// Its requests to the client: the id the client knows, and its own.
    asked: HashMap<IdBuf, IdBuf>,
    count: u64,
    sessions: HashSet<String>,
    to_client: VecDeque<Frame>,
    to_agent: VecDeque<Frame>,
}

impl Borrowed {
    pub(super) fn backlog(&self) -> usize {
        self.to_client.len() + self.to_agent.len()
    }

    /// Whether it has still something to answer.
    pub(super) fn owes(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn for_client(&mut self) -> Option<Frame> {
        self.to_client.pop_front()
    }

    pub(super) fn for_agent(&mut self) -> Option<Frame> {
        self.to_agent.pop_front()
    }

    /// Remembers who the client is.
    pub(super) fn introduce(&mut self, initialize: &Frame) {
        self.introduction = Some(initialize.clone());
    }

    /// Whether a message is about a session of the live agent.
    pub(super) fn owns(&self, body: &Value) -> bool {
        let session = body.get("sessionId").and_then(Value::as_str);
        session.is_some_and(|session| self.sessions.contains(session))
    }

    /// Whether the client knows a request of it under this id.
    pub(super) fn has_asked(&self, id: &IdBuf) -> bool {
        self.asked.contains_key(id)
    }

    /// Passes a message of the client on.
    pub(super) fn forward(&mut self, frame: &Frame, at: &Envelope) {
        if let Some(introduction) = self.introduction.take()
            && at.method(frame) != "initialize"
        {
            let introduction = with_id(&introduction, Id::String(INTRODUCTION));
            self.to_agent.push_back(introduction);
        }
        if at.kind == Kind::Request {
            self.open.insert(at.id(frame).to_owned());
        }
        self.to_agent.push_back(frame.clone());
    }

    /// Passes the client's answer on, if it is one to the live agent.
    pub(super) fn answered(&mut self, id: &IdBuf, frame: &Frame, at: &Envelope) -> bool {
        let Some(own) = self.asked.remove(id) else {
            return false;
        };
        self.to_agent.push_back(at.with_id(frame, own.as_id()));
        true
    }

    /// Tells the live agent that the client's answer cannot be read, if it is one to it.
    pub(super) fn botched(&mut self, flaw: &Flaw) -> bool {
        let Some(own) = self.asked.remove(&flaw.id) else {
            return false;
        };
        let reason = Reason::of_fault(&flaw.fault);
        self.to_agent.push_back(reply::error(own.as_id(), &reason));
        true
    }

    /// The live agent is gone: what it has is not answered any more.
    pub(super) fn lose(&mut self) {
        let reason = Reason::new(
            reply::PEER_LOST,
            "the live agent behind the recording is gone",
        );
        for id in self.open.drain() {
            self.to_client.push_back(reply::error(id.as_id(), &reason));
        }
        self.asked.clear();
    }

    /// The live agent says something.
    pub(super) fn hear(&mut self, frame: &Frame) {
        let at = match scan(frame, &Limits::default()) {
            Shape::One(at) => at,
            Shape::Bad(flaw) if flaw.role == Some(Role::Answer) && self.open.remove(&flaw.id) => {
                // The client would wait for ever.
                let reason = Reason::of_fault(&flaw.fault);
                self.to_client
                    .push_back(reply::error(flaw.id.as_id(), &reason));
                return;
            }
            // So would the agent.
            Shape::Bad(flaw) if flaw.role == Some(Role::Call) && flaw.id != IdBuf::Absent => {
                self.to_agent.push_back(reply::flaw(&flaw));
                return;
            }
            Shape::Batch => {
                self.to_agent.push_back(reply::batch());
                return;
            }
            Shape::Bad(_) => return,
        };
        let id = at.id(frame).to_owned();
        match at.kind {
            Kind::Notification => self.to_client.push_back(frame.clone()),
            Kind::Request => {
                self.count += 1;
                let name = format!("\"replay-live-{}\"", self.count);
                let named = Id::String(name.as_bytes());
                self.asked.insert(named.to_owned(), id);
                self.to_client.push_back(at.with_id(frame, named));
            }
            Kind::Result | Kind::Error => {
                if !self.open.remove(&id) {
                    // The answer to the introduction, or to nothing.
                    return;
                }
                let body = at.body(frame).and_then(tree).unwrap_or_default();
                if let Some(session) = body.get("sessionId").and_then(Value::as_str) {
                    self.sessions.insert(session.to_owned());
                }
                self.to_client.push_back(frame.clone());
            }
        }
    }
}
