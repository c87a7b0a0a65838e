//! The state of the translation for one peer. `translate` translates its messages.

use std::sync::Arc;

use super::action::ActionState;
use super::guard::holds;
use super::memory;
use super::message::Message;
use super::pending::{MAX_OPEN, PendingRequest};
use super::permission::OfferedOptions;
use super::program::Program;
use super::recent::Recent;
use super::sessions::{Session, Sessions};
use super::table::{Jsonrpc, PROMPTING, Recall, Selector, SlotScope, Way};
use super::template::Template;
use super::tree::{Node, ValueRef};
use jsonrpc::{Id, IdBuf, Kind, PendingRequests, Side};

/// The translation for one peer.
#[derive(Debug)]
pub struct Translator {
    pub(super) peer: Side,
    pub(super) program: Arc<Program>,
    /// Values that are remembered for messages that omit them, by `slot_key`. They are canonical,
    /// so a slot is written once and serves every table.
    pub(super) memory: Recent<Box<[u8]>, 4096, { 4 << 20 }>,
    pub(super) sessions: Sessions,
    /// Requests in flight, by the side that sent them.
    requests: [PendingRequests<PendingRequest>; 2],
    pub(super) minted: u32,
    pub(super) actions: ActionState,
    /// By way, the last notification that no rule concerned.
    pub(super) passed: [Template; 2],
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
            requests: [MAX_OPEN; 2].map(PendingRequests::new),
            minted: 0,
            actions: ActionState::default(),
            passed: Default::default(),
        }
    }

    /// Switches to another dialect. Requests in flight and sessions are kept; slots belong to the
    /// tables that declare them and are cleared.
    pub fn switch_to(&mut self, program: Arc<Program>) {
        self.program = program;
        self.passed = Default::default();
        self.memory = Recent::default();
        let open = self
            .requests
            .iter_mut()
            .flat_map(|requests| requests.values_mut());
        open.for_each(|pending| pending.slots.clear());
    }

    /// The memory that takes what is remembered, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let requests = self.requests.iter().flat_map(PendingRequests::iter);
        let requests = requests.map(|(_, request)| request.weight());
        let sessions = memory::sessions(&self.sessions.0);
        self.memory.bytes + sessions + self.actions.weight() + requests.sum::<usize>()
    }

    /// Forgets about so many bytes of what is known of sessions, and lowers the number by what was
    /// freed. Returns of how many sessions.
    pub fn forget(&mut self, excess: &mut usize) -> usize {
        memory::forget(&mut self.sessions.0, excess)
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
        cwd.clone_into(&mut self.actions.cwd);
    }

    /// Remembers a request as if it had passed, with its method in both columns; for examples that
    /// contain an answer only.
    pub fn assume(&mut self, requester: Side, id: &IdBuf, dialect: &str, canonical: &str) {
        let pending = PendingRequest::of(dialect, canonical);
        self.insert_request(requester, id.as_id(), pending);
    }

    /// Remembers a request; one whose id is in use is not remembered, and neither is one too many.
    pub(super) fn insert_request(&mut self, requester: Side, id: Id<'_>, pending: PendingRequest) {
        let _ = self.requests(requester).insert(id, pending);
    }

    pub(super) fn requests(&mut self, requester: Side) -> &mut PendingRequests<PendingRequest> {
        &mut self.requests[requester as usize]
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

    /// A new id for a request of the bridge; it fits 32 bits.
    pub(super) fn new_id(&mut self) -> IdBuf {
        self.minted = (self.minted + 1) % 1_000_000_000;
        let text = (1_000_000_000 + self.minted).to_string();
        Id::Number(text.as_bytes()).to_owned()
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

    /// The sessions whose histories are being told.
    pub(super) fn loading(&self) -> impl Iterator<Item = &str> {
        let asked = self.requests[Side::Client as usize].iter();
        asked
            .map(|(_, request)| request)
            .filter(|request| ["session/load", "session/resume"].contains(&&*request.canonical))
            .filter_map(|request| request.session.as_deref())
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

    /// Records the sessions and slots that a canonical message contains.
    pub(super) fn track(
        &mut self,
        from: Side,
        message: &Message<'_>,
        pending: &mut PendingRequest,
    ) {
        let answers = message.kind.is_answer();
        if message.kind == Kind::Request {
            pending.session = message.session();
            match &*message.method {
                PERMISSION => pending.offered = Some(OfferedOptions::read(&message.body.json())),
                "session/set_config_option" | "session/set_mode" => {
                    let json = message.body.json();
                    pending.params = (json.len() < 4096).then(|| json.into_owned());
                }
                _ => {}
            }
        }
        let program = Arc::clone(&self.program);
        let method = match answers {
            true => &pending.canonical,
            false => &message.method,
        };
        if program.follows_sessions {
            let session = pending.session.as_deref();
            self.sessions
                .track(from, message.kind, method, session, &message.body);
        }
        let mut of_request = Vec::new();
        for (name, slot) in &program.memory {
            let kind_fits = match slot.on.what {
                Selector::Method(_) => !answers,
                Selector::Answers(_) => message.kind == Kind::Result,
                Selector::ErrorsOf(_) => message.kind == Kind::Error,
            };
            let is_named = slot.on.what.names().canonical.as_deref() == Some(method);
            if !kind_fits || !is_named || slot.on.from != from {
                continue;
            }
            let value = message.body.get(&slot.at).map(ValueRef::json);
            // In an update `null` means the same as a missing member: the value is unchanged.
            let Some(value) = value.filter(|value| &**value != b"null") else {
                continue;
            };
            if !holds(&message.body, &slot.when.0) {
                continue;
            }
            let value: Box<[u8]> = value.into_owned().into();
            let key = slot.by.as_ref().and_then(|by| message.body.text_at(by));
            let session = match slot.per {
                SlotScope::Request => {
                    of_request.push((name.clone().into(), value));
                    continue;
                }
                SlotScope::Connection => String::new(),
                SlotScope::Session => self.session_of(message, pending),
            };
            let key = slot_key(name, &session, key.as_deref());
            let size = value.len();
            self.memory.insert(&key, value, size);
        }
        pending.slots.extend(of_request);
    }
}

/// The method whose answers are checked.
pub(super) const PERMISSION: &str = "session/request_permission";

/// The key of a remembered value: its slot, its session (empty when it has none) and its key.
pub(super) fn slot_key(slot: &str, session: &str, key: Option<&str>) -> String {
    let key = key.unwrap_or_default();
    format!("{} {slot}{} {session}{key}", slot.len(), session.len())
}
