//! The conversion for one conversation: the table `acp-v2`, and the state behind it.

use std::sync::Arc;
use std::time::Instant;

use super::exchange::{Exchange, Hop, INVALID_REQUEST, State, V2_DIALECT};
use super::methods::{passes_to_agents, passes_to_clients, requested};
use super::policies::VersionPolicies;
use crate::dialect::library::{DialectError, Library};
use crate::dialect::message::Message;
use crate::dialect::methods::{MethodName, method_of};
use crate::dialect::pending::MAX_OPEN;
use crate::dialect::program::FiredRule;
use crate::dialect::translation::{Forward, Translation};
use crate::dialect::translator::Translator;
use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, PendingRequests, Scanned, Side, scan};

/// The conversion between the peer that speaks v2 and the rest of the conversation, which is v1.
#[derive(Debug)]
pub struct VersionBridge {
    table: Translator,
    state: Box<dyn State>,
    policies: VersionPolicies,
    limits: Arc<Limits>,
    /// The methods of requests that were sent to the peer, and to the other side.
    asked: [PendingRequests<MethodName>; 2],
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
        let _ = asked[hop as usize].insert(initialize.as_id(), "initialize".into());
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
        let spelled = self.table.read(frame, at);
        let frames = spelled.frames(frame);
        let mut made = Translation {
            forward: Forward::Frames(Vec::new()),
            ..spelled
        };
        for frame in frames {
            self.convert(Hop::Peer, &frame, &mut made);
        }
        made
    }

    /// Converts a message to the v2 peer: what is forwarded is v2, what is sent back is canonical v1.
    pub fn write(&mut self, frame: &Frame) -> Translation {
        let mut made = nothing();
        self.convert(Hop::Other, frame, &mut made);
        made
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
        let mut made = nothing();
        let mut out = Exchange::new(Hop::Peer, now, self.policies);
        self.state.expire(&mut out);
        self.deliver(out, &mut made);
        made
    }

    /// Converts one message of one of the two.
    fn convert(&mut self, from: Hop, frame: &Frame, made: &mut Translation) {
        let Scanned::Message(at) = scan(frame, &self.limits) else {
            return put(made, true, frame.clone());
        };
        let method = match at.kind.is_answer() {
            // One that answers nothing is refused by the conversation.
            true => match self.asked[from as usize].remove(at.id(frame)) {
                Some((_, method)) => method,
                None => return put(made, true, frame.clone()),
            },
            false => method_of(frame, &at),
        };
        let mut out = Exchange::new(from, self.now, self.policies);
        self.handle(Message::parse(frame, &at, method), &mut out);
        self.deliver(out, made);
    }

    /// Does what is the same for both states, and leaves the rest to the state.
    fn handle<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
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

    /// Adds what a state has made of a message.
    fn deliver(&mut self, out: Exchange<'_>, made: &mut Translation) {
        made.notes.extend(out.notes);
        made.fired
            .extend(out.rules.into_iter().map(|rule| FiredRule {
                dialect: V2_DIALECT.into(),
                rule: rule.into(),
            }));
        for (to, message) in out.sent {
            if message.kind == Kind::Request {
                let method = message.method.clone();
                let _ = self.asked[to as usize].insert(message.id.as_id(), method);
            }
            let frame = message.frame(true);
            let frames = match to {
                Hop::Other => vec![frame],
                Hop::Peer => self.spell(out.from, frame, made),
            };
            for frame in frames {
                put(made, to != out.from, frame);
            }
        }
    }

    /// A message to the peer in the spelling of v2, made of one of one of the two.
    fn spell(&mut self, from: Hop, frame: Frame, made: &mut Translation) -> Vec<Frame> {
        let Scanned::Message(at) = scan(&frame, &self.limits) else {
            return vec![frame];
        };
        let spelled = self.table.write(&frame, &at);
        let frames = spelled.frames(&frame);
        made.notes.extend(spelled.notes);
        made.fired.extend(spelled.fired);
        // A request that cannot be spelled was answered in place of the peer.
        for answer in spelled.replies {
            let mut answered = nothing();
            self.convert(Hop::Peer, &answer, &mut answered);
            for to_other in answered.frames(&answer) {
                put(made, from == Hop::Peer, to_other);
            }
            for to_peer in answered.replies {
                put(made, from == Hop::Other, to_peer);
            }
            made.notes.extend(answered.notes);
        }
        frames
    }
}

/// A translation that forwards nothing yet.
fn nothing() -> Translation {
    Translation {
        forward: Forward::Frames(Vec::new()),
        ..Translation::default()
    }
}

/// Adds what is forwarded, or sent back.
fn put(made: &mut Translation, is_forwarded: bool, frame: Frame) {
    match &mut made.forward {
        Forward::Frames(frames) if is_forwarded => frames.push(frame),
        _ => made.replies.push(frame),
    }
}
