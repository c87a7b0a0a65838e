//! Translates the messages of one peer, with the state of the conversation.
//!
//! `read` translates messages from the peer, `write` those to it. `step` applies one rule, and
//! `detect` finds the dialect of a peer.

use std::sync::Arc;

use smallvec::SmallVec;

use super::action::{ActionState, Legacy};
use super::memory::Memory;
use super::message::{self, Message};
use super::method_name::MethodName;
use super::pending::{PendingRequest, PendingRequests, Purpose, is_int32};
use super::permission;
use super::program::Program;
use super::rewrite_cache::{LazyValue, RewriteCache};
use super::sessions::Sessions;
use super::table::{Jsonrpc, Way};
use super::translation::{DialectEvent, Forward, Translation};
use super::tree::Node;
use super::untouched::body_of;
use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Side, reply};

/// The translation for one peer.
#[derive(Debug)]
pub struct Translator {
    pub(super) peer: Side,
    pub(super) program: Arc<Program>,
    pub(super) memory: Memory,
    pub(super) sessions: Sessions,
    /// Requests of the peer.
    pub(super) from_peer: PendingRequests,
    /// Requests to the peer.
    pub(super) to_peer: PendingRequests,
    pub(super) minted: u32,
    pub(super) legacy: Legacy,
    pub(super) action_state: ActionState,
    /// The cached results, by way, for notifications that begin alike.
    pub(super) caches: [Option<RewriteCache>; 2],
    /// The prefixes, by way, of notifications that no rule changes.
    pub(super) untouched: [u64; 2],
    /// The prefixes, by way, of notifications that a rule may change.
    pub(super) touched: [u64; 2],
}

impl Translator {
    /// A translator for the peer on side `peer`, which uses the program's dialect.
    #[must_use]
    pub fn new(peer: Side, program: Arc<Program>) -> Self {
        Self {
            peer,
            program,
            memory: Memory::default(),
            sessions: Sessions::default(),
            from_peer: PendingRequests::default(),
            to_peer: PendingRequests::default(),
            minted: 0,
            legacy: Legacy::default(),
            action_state: ActionState::default(),
            caches: [None, None],
            untouched: [0; 2],
            touched: [0; 2],
        }
    }

    /// Switches to another dialect. Requests in flight and sessions are kept; slots belong to the
    /// tables that declare them and are cleared.
    pub fn switch_to(&mut self, program: Arc<Program>) {
        self.program = program;
        self.caches = [None, None];
        self.untouched = [0; 2];
        self.touched = [0; 2];
        self.memory = Memory::default();
        self.from_peer.forget_slots();
        self.to_peer.forget_slots();
    }

    /// The dialect's name.
    #[must_use]
    pub fn dialect(&self) -> &str {
        self.program.name()
    }

    /// From the dialect to canonical: a message the peer has sent.
    pub fn read(&mut self, frame: &Frame, at: &Envelope) -> Translation {
        let mut outcome = self.translate(Way::Read, frame, at);
        if outcome.forward == Forward::Unchanged && !at.jsonrpc {
            outcome.forward = Forward::Frames(vec![message::with_jsonrpc(frame)]);
        }
        outcome
    }

    /// From canonical to the dialect: a message to the peer.
    pub fn write(&mut self, frame: &Frame, at: &Envelope) -> Translation {
        let mut outcome = Translation::default();
        if self.queue_behind(frame, &mut outcome) {
            return outcome;
        }
        outcome = self.translate(Way::Write, frame, at);
        if at.kind == Kind::Notification && self.program.int_ids() {
            self.renumber_cancel(frame, at, &mut outcome);
        }
        self.send_stop_notice(frame, &mut outcome);
        outcome
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

    /// A new id for a request of the bridge; it fits 32 bits.
    pub(super) fn new_id(&mut self) -> IdBuf {
        self.minted = (self.minted + 1) % 1_000_000_000;
        let text = (1_000_000_000 + self.minted).to_string();
        IdBuf::Number(text.as_bytes().into())
    }

    pub(super) fn translate(&mut self, way: Way, frame: &Frame, at: &Envelope) -> Translation {
        let from = self.from(way);
        let mut out = Translation::default();
        let body = body_of(frame, at);
        let strips = way == Way::Write && self.program.strips_jsonrpc() && at.jsonrpc;
        let lacks_params = way == Way::Write && self.program.requires_params() && at.body.is_none();
        match at.kind {
            Kind::Notification => {
                if let Some(made) = self.cached(way, frame, at) {
                    return made;
                }
                if !self.is_untouched(way, frame, at) {
                    let lazy = LazyValue::of(frame, at);
                    let writes = self.memory.writes();
                    let message =
                        Message::with_lazy(frame, at, MethodName::of(frame, at), lazy.as_ref());
                    self.run(way, message, PendingRequest::default(), &mut out);
                    let cache = lazy.and_then(|lazy| RewriteCache::of(frame, at, &lazy, &out));
                    // What is remembered of each message must be read from each.
                    if cache.is_some() && writes == self.memory.writes() {
                        self.caches[way as usize] = cache;
                    }
                }
            }
            Kind::Request => {
                let method = MethodName::of(frame, at);
                let looked_at = strips
                    || lacks_params
                    || *method == *PERMISSION
                    || self.program.remembers()
                    || self.program.int_ids()
                    || self.may_match(way, at.kind, &method, body);
                if looked_at {
                    let message = Message::parse(frame, at, method);
                    self.run(way, message, PendingRequest::default(), &mut out);
                } else {
                    let id = at.id(frame).to_owned();
                    self.requests(from)
                        .insert(id, PendingRequest::of(&method, &method));
                }
            }
            Kind::Result | Kind::Error => {
                let id = at.id(frame).to_owned();
                let Some(pending) = self.requests(from.other()).remove(&id) else {
                    return out;
                };
                let looked_at = strips
                    || *pending.canonical == *PERMISSION
                    || !pending.is_plain()
                    || self.may_match(way, at.kind, &pending.dialect, body)
                    || pending.dialect != pending.canonical
                        && self.may_match(way, at.kind, &pending.canonical, body);
                if looked_at {
                    let method = match way {
                        Way::Read => pending.dialect.clone(),
                        Way::Write => pending.canonical.clone(),
                    };
                    let message = Message::parse(frame, at, method);
                    self.handle_answer(way, message, pending, &mut out);
                }
            }
        }
        out
    }

    fn handle_answer(
        &mut self,
        way: Way,
        mut message: Message<'_>,
        pending: PendingRequest,
        out: &mut Translation,
    ) {
        if let Some(id) = &pending.sender_id {
            message.id = id.clone();
            message.changed = true;
        }
        match &pending.purpose {
            Purpose::Forward => {}
            Purpose::Swallow => {
                out.note(
                    DialectEvent::Swallowed,
                    None,
                    format!("answer to {}", pending.dialect),
                );
                out.forward = Forward::Frames(Vec::new());
                return;
            }
            Purpose::ToolNumber(call) => {
                let call = call.clone();
                self.receive_tool_number(&call, &message, out);
                return;
            }
            Purpose::Session => {
                self.session_opened(&message, out);
                return;
            }
        }
        self.run(way, message, pending, out);
    }

    /// Passes one message through the layers and adds the result to the translation.
    fn run(
        &mut self,
        way: Way,
        mut message: Message<'_>,
        mut pending: PendingRequest,
        out: &mut Translation,
    ) {
        let program = Arc::clone(&self.program);
        let from = self.from(way);
        let before = (message.kind, message.id.clone(), message.method.clone());
        let original = message.body.clone();
        let answers = message.kind.is_answer();
        let is_permission = answers && *pending.canonical == *PERMISSION && from == Side::Client;
        if way == Way::Write {
            if is_permission {
                self.check_read(&mut message, &pending, None, out);
            }
            self.track(from, &message, &mut pending);
        }
        let canonical = (way == Way::Write && is_permission).then(|| message.body.clone());
        let list = self.apply_layers(&program, way, message, &mut pending, out);
        let mut passing: SmallVec<[Message<'_>; 1]> = SmallVec::new();
        let mut changed = list.len() != 1 || (way == Way::Write && program.strips_jsonrpc());
        for mut message in list {
            if is_permission {
                match &canonical {
                    None => self.check_read(&mut message, &pending, Some(&original), out),
                    Some(canonical) => Self::check_written(&mut message, canonical, &pending, out),
                }
            }
            if answers && way == Way::Read {
                self.track(from, &message, &mut pending);
            }
            if message.kind == Kind::Request || (!answers && program.remembers()) {
                let mut own = PendingRequest {
                    dialect: message.method.clone(),
                    canonical: message.method.clone(),
                    ..pending.clone()
                };
                match way {
                    Way::Read => {
                        if !answers {
                            self.track(from, &message, &mut own);
                        }
                        own.dialect = before.2.clone();
                    }
                    Way::Write => own.canonical = before.2.clone(),
                }
                if message.kind == Kind::Request {
                    if *own.canonical == *PERMISSION
                        && !permission::same_options(&original.json(), &message.body.json())
                    {
                        let why = "the options would not mean the same to the person who \
                                   chooses; the request was not passed on: offer options \
                                   that the other side can show";
                        self.refuse(&before.1, why, out);
                        out.note(DialectEvent::Permission, None, why);
                        changed = true;
                        continue;
                    }
                    self.track_request(way, from, &before, &mut message, own);
                }
            }
            let lacks_params =
                message.kind == Kind::Request && matches!(message.body, Node::Absent);
            if way == Way::Write && lacks_params && program.requires_params() {
                message.body = Node::raw(b"{}");
                message.changed = true;
            }
            changed |= message.changed;
            passing.push(message);
        }
        if changed {
            let mut frames = Vec::with_capacity(passing.len());
            for message in &passing {
                let (frame, known) =
                    message.frame_and_envelope(self.writes_jsonrpc(way, message, &pending));
                frames.push(frame);
                out.envelope = known;
            }
            out.forward = Forward::Frames(frames);
        }
    }

    /// Passes one message through the layers that have a rule for its method.
    fn apply_layers<'a>(
        &mut self,
        program: &'a Program,
        way: Way,
        message: Message<'a>,
        pending: &mut PendingRequest,
        out: &mut Translation,
    ) -> Vec<Message<'a>> {
        let from = self.from(way);
        let mut list = vec![message];
        for at in 0..program.layers.len() {
            let layer = match way {
                Way::Read => &program.layers[at],
                Way::Write => &program.layers[program.layers.len() - 1 - at],
            };
            let met = |message: &Message<'_>| layer.has_rules(way, from, message, pending);
            if !list.iter().any(met) {
                continue;
            }
            let mut next = Vec::with_capacity(list.len());
            for message in list {
                self.apply_layer(layer, way, message, pending, &mut next, out);
            }
            list = next;
        }
        list
    }

    /// Remembers a request that is forwarded.
    fn track_request(
        &mut self,
        way: Way,
        from: Side,
        before: &(Kind, IdBuf, MethodName),
        message: &mut Message<'_>,
        mut pending: PendingRequest,
    ) {
        let was_request = before.0 == Kind::Request && before.1 == message.id;
        let fits = is_int32(message.id.as_id().json());
        if way == Way::Write && self.program.int_ids() && !fits && was_request {
            pending.sender_id = Some(message.id.clone());
            message.id = self.new_id();
            message.changed = true;
        }
        self.requests(from).insert(message.id.clone(), pending);
    }

    fn writes_jsonrpc(&self, way: Way, message: &Message<'_>, pending: &PendingRequest) -> bool {
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

    /// Answers a request with error −32058.
    pub(super) fn refuse(&mut self, id: &IdBuf, why: &str, out: &mut Translation) {
        let reason = reply::Reason::new(reply::UNTRANSLATABLE, why.to_owned());
        out.replies.push(reply::error(id.as_id(), &reason));
    }
}

/// The method whose answers are checked.
pub(super) const PERMISSION: &str = "session/request_permission";
