//! The conversion for one conversation: the table `acp-v2`, and the state behind it.

use std::sync::Arc;
use std::time::Instant;

use super::methods::{passes_to_agents, passes_to_clients, requested};
use super::out::{Hop, INVALID_REQUEST, Out, State, V2_DIALECT};
use super::policies::VersionPolicies;
use crate::library::{DialectError, Library};
use crate::memory::ENTRY;
use crate::message::Message;
use crate::methods::{MethodName, method_of};
use crate::pending::MAX_OPEN;
use crate::program::FiredRule;
use crate::translation::{Forward, Translation};
use crate::translator::Translator;
use jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, PendingRequests, Scanned, Side, scan};

/// The conversion between the peer that speaks v2 and the rest of the conversation, which is v1.
#[derive(Debug)]
pub struct VersionBridge {
    table: Translator,
    state: Box<dyn State>,
    policies: VersionPolicies,
    limits: Arc<Limits>,
    /// The methods and lengths of requests that were sent to the peer, and to the other side.
    asked: [PendingRequests<(MethodName, usize)>; 2],
    /// The time of the message that is converted.
    now: Instant,
}

impl VersionBridge {
    /// The conversion by a state, while the request `initialize` with that id is open.
    ///
    /// # Errors
    /// The library lacks the table `acp-v2`.
    pub(super) fn new(
        library: &Library,
        state: Box<dyn State>,
        policies: VersionPolicies,
        limits: Arc<Limits>,
        initialize: &IdBuf,
        now: Instant,
    ) -> Result<Self, DialectError> {
        let peer = state.peer();
        let mut table = Translator::new(peer, library.program(V2_DIALECT)?);
        table.assume(Side::Client, initialize, "initialize", "initialize");
        let mut asked = [MAX_OPEN; 2].map(PendingRequests::new);
        let hop = match peer {
            Side::Agent => Hop::Peer,
            Side::Client => Hop::Other,
        };
        let _ = asked[hop as usize].insert(initialize.as_id(), ("initialize".into(), 0));
        Ok(Self {
            table,
            state,
            policies,
            limits,
            asked,
            now,
        })
    }

    /// The side that speaks v2.
    #[must_use]
    pub fn peer(&self) -> Side {
        self.state.peer()
    }

    /// Converts a message of the v2 peer: what is forwarded is canonical v1, what is sent back is v2.
    pub fn read(&mut self, frame: &Frame, at: &Envelope) -> Translation {
        let mut spelled = self.table.read(frame, at);
        let frames = spelled.frames(frame);
        let mut sent = [std::mem::take(&mut spelled.replies), Vec::new()];
        for frame in frames {
            self.convert(Hop::Peer, &frame, &mut sent, &mut spelled);
        }
        forwarded(Hop::Other, sent, spelled)
    }

    /// Converts a message to the v2 peer: what is forwarded is v2, what is sent back is canonical v1.
    pub fn write(&mut self, frame: &Frame) -> Translation {
        let (mut sent, mut made) = (Sent::default(), Translation::default());
        self.convert(Hop::Other, frame, &mut sent, &mut made);
        forwarded(Hop::Peer, sent, made)
    }

    /// The memory that takes what is remembered, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        // The state keeps parts of requests.
        let asked = self.asked.iter().flat_map(PendingRequests::iter);
        let asked: usize = asked.map(|(_, (_, length))| 2 * ENTRY + length).sum();
        self.table.weight() + self.state.weight() + asked
    }

    /// Forgets about so many bytes of what is known of sessions, and lowers the number by what was
    /// freed. Returns of how many sessions.
    pub fn forget(&mut self, excess: &mut usize) -> usize {
        self.table.forget(excess) + self.state.forget(excess)
    }

    /// Sets the time of what is read and written next.
    pub const fn set_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// When [`VersionBridge::expire`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.state.deadline()
    }

    /// Does what is due, as if the v2 peer had sent something: what is forwarded is canonical v1.
    pub fn expire(&mut self, now: Instant) -> Translation {
        let (mut sent, mut made) = (Sent::default(), Translation::default());
        let mut out = Out::new(Hop::Peer, now, self.policies);
        self.state.expire(&mut out);
        self.deliver(out, &mut sent, &mut made);
        forwarded(Hop::Other, sent, made)
    }

    /// Converts one message of one of the two; what is reported of it is added to `made`.
    fn convert(&mut self, from: Hop, frame: &Frame, sent: &mut Sent, made: &mut Translation) {
        let pass = |sent: &mut Sent| sent[from.opposite() as usize].push(frame.clone());
        let Scanned::Message(at) = scan(frame, &self.limits) else {
            return pass(sent);
        };
        let method = match at.kind.is_answer() {
            // One that answers nothing is refused by the conversation.
            true => match self.asked[from as usize].remove(at.id(frame)) {
                Some((_, (method, _))) => method,
                None => return pass(sent),
            },
            false => method_of(frame, &at),
        };
        let mut out = Out::new(from, self.now, self.policies);
        self.handle(Message::parse(frame, &at, method), &mut out);
        self.deliver(out, sent, made);
    }

    /// Does what is the same for both states, and leaves the rest to the state.
    fn handle<'a>(&mut self, message: Message<'a>, out: &mut Out<'a>) {
        let is_agent = (out.from == Hop::Peer) == (self.peer() == Side::Agent);
        match (message.kind, &*message.method) {
            (Kind::Request, _) if !message.id.as_id().is_value() => {
                let why = "a request needs an id that is a number or a string";
                out.refuse("methods", &message.id, INVALID_REQUEST, why);
            }
            (Kind::Request, "initialize") => {
                let why = "the connection is initialized already";
                out.refuse("methods", &message.id, INVALID_REQUEST, why);
            }
            // It is remembered until the agent has accepted it.
            (Kind::Request, "session/prompt")
                if message.size > self.limits.translation_bytes / 2 =>
            {
                let why = "the prompt is longer than half of translation-bytes, so it cannot be \
                           converted for the agent's version: send less, or raise the limit";
                out.refuse("prompt", &message.id, INVALID_REQUEST, why);
            }
            (Kind::Request, _) => self.state.asked(message, out),
            (Kind::Result, "initialize") => self.state.initialized(message, out),
            (Kind::Result | Kind::Error, _) => self.state.answered(message, out),
            (_, "$/cancel_request") => {
                if let Some(id) = requested(&message) {
                    self.state.withdrawn(&id, message, out);
                }
            }
            (_, "session/update") if is_agent => self.state.updated(message, out),
            (_, "elicitation/complete") if is_agent => out.pass(message),
            (_, "session/cancel") if !is_agent => self.state.cancelled(message, out),
            (_, method) if passes_to_clients(method) => out.pass(message),
            (_, method) if passes_to_agents(method) && !is_agent => out.pass(message),
            (_, method) => {
                let what = format!("the other version has no notification {method}");
                out.dropped("methods", what);
            }
        }
    }

    /// Sends what a state has made of a message.
    fn deliver(&mut self, out: Out<'_>, sent: &mut Sent, made: &mut Translation) {
        made.notes.extend(out.notes);
        made.fired
            .extend(out.rules.into_iter().map(|rule| FiredRule {
                dialect: V2_DIALECT.into(),
                rule: rule.into(),
            }));
        for (to, message) in out.sent {
            let frame = message.frame(true);
            if message.kind == Kind::Request {
                let length = match &*message.method {
                    // Its content is weighed with its turn.
                    "session/prompt" => 0,
                    _ => frame.len(),
                };
                let asked = (message.method.clone(), length);
                let _ = self.asked[to as usize].insert(message.id.as_id(), asked);
            }
            if to == Hop::Peer
                && let Scanned::Message(at) = scan(&frame, &self.limits)
            {
                self.spell(&frame, &at, sent, made);
            } else {
                sent[to as usize].push(frame);
            }
        }
    }

    /// Sends a message to the peer in the spelling of v2.
    fn spell(&mut self, frame: &Frame, at: &Envelope, sent: &mut Sent, made: &mut Translation) {
        let spelled = self.table.write(frame, at);
        let frames = spelled.frames(frame);
        made.notes.extend(spelled.notes);
        made.fired.extend(spelled.fired);
        // A request that cannot be spelled was answered in place of the peer.
        for answer in spelled.replies {
            self.convert(Hop::Peer, &answer, sent, made);
        }
        sent[Hop::Peer as usize].extend(frames);
    }
}

/// What is sent to the peer, and to the other side.
type Sent = [Vec<Frame>; 2];

/// A translation of what is forwarded to one of the two, and sent back to the other one.
fn forwarded(to: Hop, mut sent: Sent, mut made: Translation) -> Translation {
    made.forward = Forward::Frames(std::mem::take(&mut sent[to as usize]));
    made.replies = std::mem::take(&mut sent[to.opposite() as usize]);
    made
}
