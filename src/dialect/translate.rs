//! Translating the messages of one peer, with what the conversation has shown so far.
//!
//! `read` takes what the peer says, `write` what is said to it. Not here: one rule's work (see
//! `step`), and finding out which dialect a peer speaks (see `detect`).

use std::sync::Arc;

use super::action::Legacy;
use super::asked::{Asked, Purpose, Requests};
use super::memory::Memory;
use super::message::{self, Message};
use super::outcome::{Happened, Outcome, Pass};
use super::permission::{self, Offered, Verdict};
use super::program::Program;
use super::rewrite;
use super::sessions::Sessions;
use super::table::{Jsonrpc, Per, Selector, Way};
use super::text;
use super::tree::Node;
use crate::wire::{Envelope, Frame, IdBuf, Kind, Side, reply};

/// The translation of one peer.
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
}

impl Translator {
    /// A translation for the peer on side `peer`, which speaks the program's dialect.
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
        }
    }

    /// The dialect's name.
    #[must_use]
    pub fn dialect(&self) -> &str {
        self.program.name()
    }

    /// How many remembered values were forgotten to make room, and how many requests could not
    /// be followed.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.memory.evicted() + self.by_peer.lost + self.by_far.lost
    }

    /// From the dialect to canonical: a message the peer has sent.
    pub fn read(&mut self, frame: &Frame, at: &Envelope) -> Outcome {
        let mut outcome = self.translate(Way::Read, frame, at);
        if outcome.pass == Pass::Same && !message::says_jsonrpc(frame) {
            outcome.pass = Pass::Frames(vec![message::with_jsonrpc(frame)]);
        }
        outcome
    }

    /// From canonical to the dialect: a message the peer is to have.
    pub fn write(&mut self, frame: &Frame, at: &Envelope) -> Outcome {
        self.translate(Way::Write, frame, at)
    }

    /// Remembers a request as if it had passed, with its method in both columns; for examples
    /// that show an answer alone.
    pub fn assume(&mut self, asker: Side, id: &IdBuf, dialect: &str, canonical: &str) {
        let asked = Asked {
            dialect: dialect.into(),
            canonical: canonical.into(),
            ..Asked::default()
        };
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

    /// A number for a request of the bridge's own; it fits 32 bits.
    pub(super) fn mint(&mut self) -> IdBuf {
        self.minted = (self.minted + 1) % 1_000_000_000;
        let text = (1_000_000_000 + self.minted).to_string();
        IdBuf::Number(text.as_bytes().into())
    }

    fn translate(&mut self, way: Way, frame: &Frame, at: &Envelope) -> Outcome {
        let from = self.from(way);
        let mut out = Outcome::default();
        match at.kind {
            Kind::Notification => {
                let method = at.method(frame);
                let body = at.body(frame).map_or(Node::Absent, Node::raw);
                let met = self.program.knows(way, from, at.kind, &method)
                    && !self.program.passes(way, from, &method, &body);
                if met || self.strips(way, frame) {
                    let message = Message::take(frame, at, &method);
                    self.run(way, message, Asked::default(), &mut out);
                }
            }
            Kind::Request => {
                let method = at.method(frame);
                let message = Message::take(frame, at, &method);
                self.run(way, message, Asked::default(), &mut out);
            }
            Kind::Result | Kind::Error => {
                let id = at.id(frame).to_owned();
                let Some(asked) = self.requests(from.other()).answer(&id) else {
                    return out;
                };
                let method = match way {
                    Way::Read => asked.dialect.clone(),
                    Way::Write => asked.canonical.clone(),
                };
                let message = Message::take(frame, at, &method);
                self.answered(way, message, asked, &mut out);
            }
        }
        out
    }

    /// Whether a message is written without a member that it has.
    fn strips(&self, way: Way, frame: &Frame) -> bool {
        way == Way::Write
            && *self.program.jsonrpc() != Jsonrpc::Always
            && message::says_jsonrpc(frame)
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

    /// Takes one message through the layers and puts what comes of it into the outcome.
    fn run(&mut self, way: Way, message: Message<'_>, mut asked: Asked, out: &mut Outcome) {
        let program = Arc::clone(&self.program);
        let from = self.from(way);
        let before = (message.kind, message.id.clone(), message.method.clone());
        let original = message.body.clone();
        let answers = matches!(message.kind, Kind::Result | Kind::Error);
        let mut message = message;
        if way == Way::Write {
            if answers && &*asked.canonical == PERMISSION && from == Side::Client {
                self.place_answer(&mut message, &asked, None, out);
            }
            self.see(from, &message, &mut asked);
        }
        let canonical = (way == Way::Write).then(|| message.body.clone());
        let mut list = vec![message];
        for at in 0..program.layers.len() {
            let at = match way {
                Way::Read => at,
                Way::Write => program.layers.len() - 1 - at,
            };
            let mut next = Vec::with_capacity(list.len());
            for message in list {
                self.step(
                    &program.layers[at],
                    way,
                    message,
                    &mut asked,
                    &mut next,
                    out,
                );
            }
            list = next;
        }
        let mut frames = Vec::with_capacity(list.len());
        let mut changed = list.len() != 1;
        for mut message in list {
            if answers && &*asked.canonical == PERMISSION && from == Side::Client {
                match &canonical {
                    None => self.place_answer(&mut message, &asked, Some(&original), out),
                    Some(canonical) => Self::check_written(&mut message, canonical, &asked, out),
                }
            }
            let mut own = Asked {
                dialect: message.method.as_str().into(),
                canonical: message.method.as_str().into(),
                ..asked.clone()
            };
            match way {
                Way::Read => {
                    let seen = if answers { &mut asked } else { &mut own };
                    self.see(from, &message, seen);
                    own.dialect = before.2.as_str().into();
                }
                Way::Write => own.canonical = before.2.as_str().into(),
            }
            if message.kind == Kind::Request {
                if &*own.canonical == PERMISSION
                    && !permission::same_options(&original.json(), &message.body.json())
                {
                    let why = "the options would not mean the same to the person who chooses; \
                               the request was not passed on: offer options that the other side can show";
                    self.refuse(&before.1, why, out);
                    out.note(Happened::Permission, None, why);
                    changed = true;
                    continue;
                }
                self.ask(way, from, &before, &mut message, own);
            }
            changed |= message.changed;
            frames.push(message.frame(self.writes_jsonrpc(way, &message, &asked)));
        }
        let strip = way == Way::Write && *self.program.jsonrpc() != Jsonrpc::Always;
        if changed || strip {
            out.pass = Pass::Frames(frames);
        }
    }

    /// Follows a request that goes on.
    fn ask(
        &mut self,
        way: Way,
        from: Side,
        before: &(Kind, IdBuf, String),
        message: &mut Message<'_>,
        mut asked: Asked,
    ) {
        let was_request = before.0 == Kind::Request && before.1 == message.id;
        let fits = |id: &IdBuf| match id {
            IdBuf::Number(text) => {
                std::str::from_utf8(text).is_ok_and(|text| text.parse::<i32>().is_ok())
            }
            _ => false,
        };
        if way == Way::Write && self.program.int_ids() && !fits(&message.id) && was_request {
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
                let method = match message.kind {
                    Kind::Request | Kind::Notification => message.method.as_str(),
                    Kind::Result | Kind::Error => &asked.dialect,
                };
                methods.iter().any(|known| known == method)
            }
        }
    }

    /// Whether answers of the bridge's own to this way's sender carry `jsonrpc`.
    pub(super) fn answers_jsonrpc(&self, way: Way) -> bool {
        way == Way::Write || *self.program.jsonrpc() == Jsonrpc::Always
    }

    /// Answers a request with error −32058.
    pub(super) fn refuse(&mut self, id: &IdBuf, why: &str, out: &mut Outcome) {
        let reason = reply::Reason::new(reply::UNTRANSLATABLE, why.to_owned());
        out.back.push(reply::error(id.as_id(), &reason));
    }

    /// Sees a canonical message: sessions and slots.
    fn see(&mut self, from: Side, message: &Message<'_>, asked: &mut Asked) {
        let answers = matches!(message.kind, Kind::Result | Kind::Error);
        let method = if answers {
            asked.canonical.to_string()
        } else {
            message.method.clone()
        };
        if message.kind == Kind::Request {
            let json = message.body.json();
            let session = text::member(&json, "sessionId").and_then(text::string);
            asked.session = session.map(std::borrow::Cow::into_owned);
            match &*method {
                PERMISSION => asked.offered = Some(Offered::read(&json)),
                "session/set_config_option" if json.len() < 4096 => {
                    asked.params = Some(json.into_owned());
                }
                _ => {}
            }
        }
        if self.program.sessions {
            let session = asked.session.as_deref();
            self.sessions
                .see(from, message.kind, &method, session, &message.body);
        }
        let program = Arc::clone(&self.program);
        for (at, memory) in program.memory.iter().enumerate() {
            let slot = &memory.slot;
            let kind_fits = match slot.on.what {
                Selector::Method(_) => !answers,
                Selector::Answers(_) => message.kind == Kind::Result,
                Selector::ErrorsOf(_) => message.kind == Kind::Error,
            };
            let named = slot.on.what.names().canonical.as_deref() == Some(&*method);
            if !kind_fits
                || !named
                || slot.on.from != from
                || !rewrite::holds(&message.body, &slot.when)
            {
                continue;
            }
            let Some(look) = message.body.look(&slot.at) else {
                continue;
            };
            let value = look.json();
            let key = slot.by.as_ref().and_then(|by| message.body.text_at(by));
            match slot.per {
                Per::Request => asked.slots.push((at, value.into_owned().into())),
                Per::Connection => {
                    self.memory
                        .keep(at, "", key.as_deref().unwrap_or_default(), &value);
                }
                Per::Session => {
                    let json = message.body.json();
                    let own = text::member(&json, "sessionId").and_then(text::string);
                    let session = own
                        .as_deref()
                        .or(asked.session.as_deref())
                        .unwrap_or_default();
                    self.memory
                        .keep(at, session, key.as_deref().unwrap_or_default(), &value);
                }
            }
        }
    }

    /// Judges a permission answer in canonical, and repairs it.
    fn place_answer(
        &self,
        message: &mut Message<'_>,
        asked: &Asked,
        said: Option<&Node<'_>>,
        out: &mut Outcome,
    ) {
        if message.kind != Kind::Result {
            return;
        }
        let offered = asked.offered.clone().unwrap_or_default();
        let verdict = Verdict::read(&message.body.json());
        let ruling = match said {
            Some(said) => permission::judge_read(&said.json(), &offered, &verdict),
            None => offered.place(&verdict),
        };
        if let Some(repair) = ruling.repair {
            message.body = Node::made(ruling.verdict.result());
            message.changed = true;
            out.note(Happened::Permission, None, repair);
        }
    }

    /// Judges a permission answer as it is written to the dialect.
    fn check_written(
        message: &mut Message<'_>,
        canonical: &Node<'_>,
        asked: &Asked,
        out: &mut Outcome,
    ) {
        if message.kind != Kind::Result {
            return;
        }
        let offered = asked.offered.clone().unwrap_or_default();
        let verdict = Verdict::read(&canonical.json());
        if permission::judge_write(&verdict, &offered, &message.body.json()) {
            return;
        }
        let why = "the answer would not mean what it means; it failed closed";
        let error = format!("{{\"code\":{},\"message\":{why:?}}}", reply::UNTRANSLATABLE);
        message.kind = Kind::Error;
        message.body = Node::made(error.into_bytes());
        message.changed = true;
        out.note(Happened::Permission, None, why);
    }
}

/// The method whose answers are sacred.
pub(super) const PERMISSION: &str = "session/request_permission";
