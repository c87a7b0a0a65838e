//! The state of the translation for one peer. `translate` translates its messages.

use std::sync::Arc;

use super::action::{ActionState, Legacy};
use super::message::Message;
use super::pending::{PendingRequest, PendingRequests};
use super::program::Program;
use super::recent::Recent;
use super::sessions::{Session, Sessions};
use super::table::{Jsonrpc, PROMPTING, Recall, SlotScope, Way};
use super::translation::Translation;
use super::tree::Node;
use crate::jsonrpc::{IdBuf, Kind, Side, reply};

/// The translation for one peer.
#[derive(Debug)]
pub struct Translator {
    pub(super) peer: Side,
    pub(super) program: Arc<Program>,
    /// Values that are remembered for messages that omit them, by `slot_key`. They are canonical,
    /// so a slot is written once and serves every table.
    pub(super) memory: Recent<Box<[u8]>, 4096, { 4 << 20 }>,
    pub(super) sessions: Sessions,
    /// Requests of the peer.
    pub(super) from_peer: PendingRequests,
    /// Requests to the peer.
    pub(super) to_peer: PendingRequests,
    pub(super) minted: u32,
    pub(super) legacy: Legacy,
    pub(super) action_state: ActionState,
}

impl Translator {
    /// A translator for the peer on side `peer`, which uses the program's dialect.
    #[must_use]
    pub fn new(peer: Side, program: Arc<Program>) -> Self {
        Self {
            peer,
            program,
            memory: Recent::default(),
            sessions: Sessions::default(),
            from_peer: PendingRequests::default(),
            to_peer: PendingRequests::default(),
            minted: 0,
            legacy: Legacy::default(),
            action_state: ActionState::default(),
        }
    }

    /// Switches to another dialect. Requests in flight and sessions are kept; slots belong to the
    /// tables that declare them and are cleared.
    pub fn switch_to(&mut self, program: Arc<Program>) {
        self.program = program;
        self.memory = Recent::default();
        self.from_peer.forget_slots();
        self.to_peer.forget_slots();
    }

    /// The dialect's name.
    #[must_use]
    pub fn dialect(&self) -> &str {
        self.program.name()
    }

    /// The canonical method that the peer, a client, takes a call for which has the dialect's own
    /// name; `None` when the dialect has no such name.
    #[must_use]
    pub fn canonical_call(&self, method: &str) -> Option<&str> {
        self.program.canonical_call(method)
    }

    /// Sets the working directory of the relay, for sessions that it opens itself.
    pub fn set_cwd(&mut self, cwd: &str) {
        cwd.clone_into(&mut self.legacy.cwd);
    }

    /// Remembers a request as if it had passed, with its method in both columns; for examples that
    /// contain an answer only.
    pub fn assume(&mut self, requester: Side, id: &IdBuf, dialect: &str, canonical: &str) {
        let pending = PendingRequest::of(dialect, canonical);
        if !self.requests(requester).contains(id) {
            self.requests(requester).insert(id.clone(), pending);
        }
    }

    pub(super) fn requests(&mut self, requester: Side) -> &mut PendingRequests {
        if requester == self.peer {
            &mut self.from_peer
        } else {
            &mut self.to_peer
        }
    }

    pub(super) const fn from(&self, way: Way) -> Side {
        match way {
            Way::Read => self.peer,
            Way::Write => self.peer.other(),
        }
    }

    /// The session of a request.
    pub(super) fn session(&self, pending: &PendingRequest) -> Option<&Session> {
        self.sessions.get(pending.session.as_deref()?)
    }

    /// Whether that holds for a session.
    pub(super) fn session_has(&self, id: &str, what: impl FnOnce(&Session) -> bool) -> bool {
        self.sessions.get(id).is_some_and(what)
    }

    /// A new id for a request of the bridge; it fits 32 bits.
    pub(super) fn new_id(&mut self) -> IdBuf {
        self.minted = (self.minted + 1) % 1_000_000_000;
        let text = (1_000_000_000 + self.minted).to_string();
        IdBuf::Number(text.as_bytes().into())
    }

    pub(super) fn writes_jsonrpc(
        &self,
        way: Way,
        message: &Message<'_>,
        pending: &PendingRequest,
    ) -> bool {
        match (way, self.program.jsonrpc()) {
            (Way::Read, _) | (_, Jsonrpc::Always) => true,
            (Way::Write, Jsonrpc::Only(methods)) => {
                let method: &str = match message.kind {
                    Kind::Request | Kind::Notification => &message.method,
                    Kind::Result | Kind::Error => &pending.dialect,
                };
                methods.iter().any(|known| **known == *method)
            }
        }
    }

    /// Whether answers of the bridge to the sender carry `jsonrpc`.
    pub(super) fn answers_jsonrpc(&self, way: Way) -> bool {
        way == Way::Write || *self.program.jsonrpc() == Jsonrpc::Always
    }

    /// The session whose slots are read; empty if there are no slots by session.
    pub(super) fn session_of(&self, message: &Message<'_>, pending: &PendingRequest) -> String {
        let mut slots = self.program.memory.values();
        if !slots.any(|slot| slot.per == SlotScope::Session) {
            return String::new();
        }
        let own = message.session().or_else(|| pending.session.clone());
        own.unwrap_or_default()
    }

    pub(super) fn recall(
        &self,
        recall: &Recall,
        key: Option<&str>,
        session: &str,
        pending: &PendingRequest,
    ) -> Option<Node<'static>> {
        if recall.slot == PROMPTING {
            return self.sessions.prompting().map(Node::string);
        }
        let name = &recall.slot;
        let remembered = |session| {
            self.memory
                .get(&slot_key(name, session, key))
                .map(|value| &**value)
        };
        let value = match self.program.memory.get(name)?.per {
            SlotScope::Request => pending.slot(name),
            SlotScope::Connection => remembered(""),
            SlotScope::Session => remembered(session),
        };
        value.map(|value| Node::owned(value.to_vec()))
    }

    /// Answers a request with error −32058.
    pub(super) fn refuse(&mut self, id: &IdBuf, why: &str, out: &mut Translation) {
        let reason = reply::Reason::new(reply::UNTRANSLATABLE, why.to_owned());
        out.replies.push(reply::error(id.as_id(), &reason));
    }
}

/// The method whose answers are checked.
pub(super) const PERMISSION: &str = "session/request_permission";

/// The key of a remembered value: its slot, its session (empty when it has none) and its key.
pub(super) fn slot_key(slot: &str, session: &str, key: Option<&str>) -> String {
    let key = key.unwrap_or_default();
    format!("{} {slot}{} {session}{key}", slot.len(), session.len())
}
