//! Translates the messages of one peer, with the state of the conversation.
//!
//! `read` translates messages from the peer, `write` those to it. `step` applies one rule, and
//! `detect` finds the dialect of a peer.

use std::sync::Arc;

use smallvec::SmallVec;

use super::action::{Kept, Legacy};
use super::asked::{Asked, Purpose, Requests, fits};
use super::habit::{Habit, Seal};
use super::idle::body_of;
use super::memory::Memory;
use super::message::{self, Message};
use super::name::Name;
use super::outcome::{Happened, Outcome, Pass};
use super::permission;
use super::program::Program;
use super::sessions::Sessions;
use super::table::{Jsonrpc, Way};
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Side, reply};

/// The translation for one peer.
#[derive(Debug)]
pub struct Translator {
    pub(super) peer: Side,
    pub(super) program: Arc<Program>,
    pub(super) memory: Memory,
    pub(super) sessions: Sessions,
    /// Requests of the peer.
    pub(super) by_peer: Requests,
    /// Requests to the peer.
    pub(super) by_far: Requests,
    pub(super) minted: u32,
    pub(super) legacy: Legacy,
    pub(super) kept: Kept,
    /// The cached results, by way, for notifications that begin alike.
    pub(super) habits: [Option<Habit>; 2],
    /// The prefixes, by way, of notifications that no rule changes.
    pub(super) idle: [u64; 2],
    /// The prefixes, by way, of notifications that a rule may change.
    pub(super) busy: [u64; 2],
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
            by_peer: Requests::default(),
            by_far: Requests::default(),
            minted: 0,
            legacy: Legacy::default(),
            kept: Kept::default(),
            habits: [None, None],
            idle: [0; 2],
            busy: [0; 2],
        }
    }

    /// Switches to another dialect. Requests in flight and sessions are kept; slots belong to the
    /// tables that declare them and are cleared.
    pub fn turn_to(&mut self, program: Arc<Program>) {
        self.program = program;
        self.habits = [None, None];
        self.idle = [0; 2];
        self.busy = [0; 2];
        self.memory = Memory::default();
        self.by_peer.forget_slots();
        self.by_far.forget_slots();
    }

    /// The dialect's name.
    #[must_use]
    pub fn dialect(&self) -> &str {
        self.program.name()
    }

    /// From the dialect to canonical: a message the peer has sent.
    pub fn read(&mut self, frame: &Frame, at: &Envelope) -> Outcome {
        let mut outcome = self.translate(Way::Read, frame, at);
        if outcome.pass == Pass::Same && !at.jsonrpc {
            outcome.pass = Pass::Frames(vec![message::with_jsonrpc(frame)]);
        }
        outcome
    }

    /// From canonical to the dialect: a message to the peer.
    pub fn write(&mut self, frame: &Frame, at: &Envelope) -> Outcome {
        let mut outcome = Outcome::default();
        if self.waits(frame, &mut outcome) {
            return outcome;
        }
        outcome = self.translate(Way::Write, frame, at);
        if at.kind == Kind::Notification && self.program.int_ids() {
            self.renumber_cancel(frame, at, &mut outcome);
        }
        self.say_parting(frame, &mut outcome);
        outcome
    }

    /// The canonical method that the peer, a client, takes a call for which has the dialect's own
    /// name; `None` when the dialect has no such name.
    #[must_use]
    pub fn takes_for(&self, method: &str) -> Option<&str> {
        self.program.renames(method)
    }

    /// Sets the working directory of the relay, for sessions that it opens itself.
    pub fn runs_in(&mut self, folder: &str) {
        folder.clone_into(&mut self.legacy.folder);
    }

    /// Remembers a request as if it had passed, with its method in both columns; for examples that
    /// contain an answer only.
    pub fn assume(&mut self, asker: Side, id: &IdBuf, dialect: &str, canonical: &str) {
        let asked = Asked::of(dialect, canonical);
        if !self.requests(asker).has(id) {
            self.requests(asker).ask(id.clone(), asked);
        }
    }

    pub(super) fn requests(&mut self, asker: Side) -> &mut Requests {
        if asker == self.peer {
            &mut self.by_peer
        } else {
            &mut self.by_far
        }
    }

    pub(super) const fn from(&self, way: Way) -> Side {
        match way {
            Way::Read => self.peer,
            Way::Write => self.peer.other(),
        }
    }

    /// A new id for a request of the bridge; it fits 32 bits.
    pub(super) fn mint(&mut self) -> IdBuf {
        self.minted = (self.minted + 1) % 1_000_000_000;
        let text = (1_000_000_000 + self.minted).to_string();
        IdBuf::Number(text.as_bytes().into())
    }

    pub(super) fn translate(&mut self, way: Way, frame: &Frame, at: &Envelope) -> Outcome {
        let from = self.from(way);
        let mut out = Outcome::default();
        let body = body_of(frame, at);
        let strips = way == Way::Write && self.program.strips() && at.jsonrpc;
        let lacks = way == Way::Write && self.program.wants_params() && at.body.is_none();
        match at.kind {
            Kind::Notification => {
                if let Some(made) = self.again(way, frame, at) {
                    return made;
                }
                if !self.leaves(way, frame, at) {
                    let seal = Seal::of(frame, at);
                    let told = self.memory.told();
                    let message = Message::sealed(frame, at, Name::of(frame, at), seal.as_ref());
                    self.run(way, message, Asked::default(), &mut out);
                    let habit = seal.and_then(|seal| Habit::of(frame, at, &seal, &out));
                    // What is remembered of each message must be read from each.
                    if habit.is_some() && told == self.memory.told() {
                        self.habits[way as usize] = habit;
                    }
                }
            }
            Kind::Request => {
                let method = Name::of(frame, at);
                let looked_at = strips
                    || lacks
                    || *method == *PERMISSION
                    || self.program.remembers()
                    || self.program.int_ids()
                    || self.lets_in(way, at.kind, &method, body);
                if looked_at {
                    let message = Message::take(frame, at, method);
                    self.run(way, message, Asked::default(), &mut out);
                } else {
                    let id = at.id(frame).to_owned();
                    self.requests(from).ask(id, Asked::of(&method, &method));
                }
            }
            Kind::Result | Kind::Error => {
                let id = at.id(frame).to_owned();
                let Some(asked) = self.requests(from.other()).answer(&id) else {
                    return out;
                };
                let looked_at = strips
                    || *asked.canonical == *PERMISSION
                    || !asked.is_plain()
                    || self.lets_in(way, at.kind, &asked.dialect, body)
                    || asked.dialect != asked.canonical
                        && self.lets_in(way, at.kind, &asked.canonical, body);
                if looked_at {
                    let method = match way {
                        Way::Read => asked.dialect.clone(),
                        Way::Write => asked.canonical.clone(),
                    };
                    let message = Message::take(frame, at, method);
                    self.answered(way, message, asked, &mut out);
                }
            }
        }
        out
    }

    fn answered(&mut self, way: Way, mut message: Message<'_>, asked: Asked, out: &mut Outcome) {
        if let Some(id) = &asked.asker_id {
            message.id = id.clone();
            message.changed = true;
        }
        match &asked.purpose {
            Purpose::Forward => {}
            Purpose::Swallow => {
                out.note(
                    Happened::Swallowed,
                    None,
                    format!("answer to {}", asked.dialect),
                );
                out.pass = Pass::Frames(Vec::new());
                return;
            }
            Purpose::ToolNumber(call) => {
                let call = call.clone();
                self.tool_number(&call, &message, out);
                return;
            }
            Purpose::Session => {
                self.session_opened(&message, out);
                return;
            }
        }
        self.run(way, message, asked, out);
    }

    /// Passes one message through the layers and adds the result to the translation.
    fn run(&mut self, way: Way, mut message: Message<'_>, mut asked: Asked, out: &mut Outcome) {
        let program = Arc::clone(&self.program);
        let from = self.from(way);
        let before = (message.kind, message.id.clone(), message.method.clone());
        let original = message.body.clone();
        let answers = message.kind.is_answer();
        let is_verdict = answers && *asked.canonical == *PERMISSION && from == Side::Client;
        if way == Way::Write {
            if is_verdict {
                self.place_answer(&mut message, &asked, None, out);
            }
            self.see(from, &message, &mut asked);
        }
        let canonical = (way == Way::Write && is_verdict).then(|| message.body.clone());
        let list = self.descend(&program, way, message, &mut asked, out);
        let mut passing: SmallVec<[Message<'_>; 1]> = SmallVec::new();
        let mut changed = list.len() != 1 || (way == Way::Write && program.strips());
        for mut message in list {
            if is_verdict {
                match &canonical {
                    None => self.place_answer(&mut message, &asked, Some(&original), out),
                    Some(canonical) => Self::check_written(&mut message, canonical, &asked, out),
                }
            }
            if answers && way == Way::Read {
                self.see(from, &message, &mut asked);
            }
            if message.kind == Kind::Request || (!answers && program.remembers()) {
                let mut own = Asked {
                    dialect: message.method.clone(),
                    canonical: message.method.clone(),
                    ..asked.clone()
                };
                match way {
                    Way::Read => {
                        if !answers {
                            self.see(from, &message, &mut own);
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
                        out.note(Happened::Permission, None, why);
                        changed = true;
                        continue;
                    }
                    self.ask(way, from, &before, &mut message, own);
                }
            }
            let lacks = message.kind == Kind::Request && matches!(message.body, Node::Absent);
            if way == Way::Write && lacks && program.wants_params() {
                message.body = Node::raw(b"{}");
                message.changed = true;
            }
            changed |= message.changed;
            passing.push(message);
        }
        if changed {
            let mut frames = Vec::with_capacity(passing.len());
            for message in &passing {
                let (frame, known) = message.told(self.writes_jsonrpc(way, message, &asked));
                frames.push(frame);
                out.known = known;
            }
            out.pass = Pass::Frames(frames);
        }
    }

    /// Passes one message through the layers that have a rule for its method.
    fn descend<'a>(
        &mut self,
        program: &'a Program,
        way: Way,
        message: Message<'a>,
        asked: &mut Asked,
        out: &mut Outcome,
    ) -> Vec<Message<'a>> {
        let from = self.from(way);
        let mut list = vec![message];
        for at in 0..program.layers.len() {
            let layer = match way {
                Way::Read => &program.layers[at],
                Way::Write => &program.layers[program.layers.len() - 1 - at],
            };
            let met = |message: &Message<'_>| layer.meets(way, from, message, asked);
            if !list.iter().any(met) {
                continue;
            }
            let mut next = Vec::with_capacity(list.len());
            for message in list {
                self.step(layer, way, message, asked, &mut next, out);
            }
            list = next;
        }
        list
    }

    /// Remembers a request that is forwarded.
    fn ask(
        &mut self,
        way: Way,
        from: Side,
        before: &(Kind, IdBuf, Name),
        message: &mut Message<'_>,
        mut asked: Asked,
    ) {
        let was_request = before.0 == Kind::Request && before.1 == message.id;
        let fits = fits(message.id.as_id().json());
        if way == Way::Write && self.program.int_ids() && !fits && was_request {
            asked.asker_id = Some(message.id.clone());
            message.id = self.mint();
            message.changed = true;
        }
        self.requests(from).ask(message.id.clone(), asked);
    }

    fn writes_jsonrpc(&self, way: Way, message: &Message<'_>, asked: &Asked) -> bool {
        match (way, self.program.jsonrpc()) {
            (Way::Read, _) | (_, Jsonrpc::Always) => true,
            (Way::Write, Jsonrpc::Only(methods)) => {
                let method: &str = match message.kind {
                    Kind::Request | Kind::Notification => &message.method,
                    Kind::Result | Kind::Error => &asked.dialect,
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
    pub(super) fn refuse(&mut self, id: &IdBuf, why: &str, out: &mut Outcome) {
        let reason = reply::Reason::new(reply::UNTRANSLATABLE, why.to_owned());
        out.back.push(reply::error(id.as_id(), &reason));
    }
}

/// The method whose answers are checked.
pub(super) const PERMISSION: &str = "session/request_permission";
