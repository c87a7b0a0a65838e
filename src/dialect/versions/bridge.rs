//! The conversion for one conversation: the table `acp-v2`, and the state behind it.

use std::sync::Arc;
use std::time::Instant;

use super::exchange::{Exchange, Hop, V2_DIALECT};
use super::initialize::{result_to_v1, result_to_v2};
use super::policies::VersionPolicies;
use super::to_v1::ToV1;
use super::to_v2::ToV2;
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
    peer: Side,
    table: Translator,
    state: State,
    policies: VersionPolicies,
    limits: Arc<Limits>,
    /// The methods of requests that were sent to the peer, and to the other side.
    asked: [PendingRequests<MethodName>; 2],
    /// The time of the message that is converted.
    now: Instant,
}

/// The state of the conversion.
#[derive(Debug)]
pub(super) enum State {
    /// The peer is an agent of v2.
    ToV1(Box<ToV1>),
    /// The peer is a client of v2.
    ToV2(Box<ToV2>),
}

impl VersionBridge {
    /// The conversion for the peer on side `peer`, while the request `initialize` with that id is
    /// open.
    ///
    /// # Errors
    /// The library lacks the table `acp-v2`.
    pub(super) fn new(
        library: &Library,
        state: State,
        policies: VersionPolicies,
        limits: Arc<Limits>,
        initialize: &IdBuf,
        now: Instant,
    ) -> Result<Self, DialectError> {
        let peer = match &state {
            State::ToV1(_) => Side::Agent,
            State::ToV2(_) => Side::Client,
        };
        let mut table = Translator::new(peer, library.program(V2_DIALECT)?);
        table.assume(Side::Client, initialize, "initialize", "initialize");
        let mut asked = [MAX_OPEN; 2].map(PendingRequests::new);
        let hop = match peer {
            Side::Agent => Hop::Peer,
            Side::Client => Hop::Other,
        };
        let _ = asked[hop as usize].insert(initialize.as_id(), "initialize".into());
        Ok(Self {
            peer,
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
    pub const fn peer(&self) -> Side {
        self.peer
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
            self.convert(Hop::Other, &frame, &mut made);
        }
        made
    }

    /// Converts a message to the v2 peer: what is forwarded is v2, what is sent back is canonical v1.
    pub fn write(&mut self, frame: &Frame) -> Translation {
        let mut made = Translation {
            forward: Forward::Frames(Vec::new()),
            ..Translation::default()
        };
        self.convert(Hop::Peer, frame, &mut made);
        made
    }

    /// Sets the time of what is read and written next.
    pub const fn set_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// When [`VersionBridge::expire`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::ToV1(state) => state.deadline(),
            State::ToV2(state) => state.deadline(),
        }
    }

    /// Does what is due, as if the v2 peer had sent something: what is forwarded is canonical v1.
    pub fn expire(&mut self, now: Instant) -> Translation {
        let mut made = Translation {
            forward: Forward::Frames(Vec::new()),
            ..Translation::default()
        };
        let mut out = Exchange::new(now, self.policies);
        match &mut self.state {
            State::ToV1(state) => state.expire(&mut out),
            State::ToV2(state) => state.expire(&mut out),
        }
        self.deliver(Hop::Other, out, &mut made);
        made
    }

    /// Converts one message on its way `to` one of the two.
    fn convert(&mut self, to: Hop, frame: &Frame, made: &mut Translation) {
        let Scanned::Message(at) = scan(frame, &self.limits) else {
            push(made, frame.clone());
            return;
        };
        let from = match to {
            Hop::Peer => Hop::Other,
            Hop::Other => Hop::Peer,
        };
        let method = match at.kind.is_answer() {
            // One that answers nothing is refused by the conversation.
            true => match self.asked[from as usize].remove(at.id(frame)) {
                Some((_, method)) => method,
                None => return push(made, frame.clone()),
            },
            false => method_of(frame, &at),
        };
        let message = Message::parse(frame, &at, method);
        let mut out = Exchange::new(self.now, self.policies);
        if &*message.method == "initialize" && at.kind == Kind::Result {
            match &self.state {
                State::ToV1(state) => result_to_v1(message, state.client_tools(), &mut out),
                State::ToV2(_) => result_to_v2(message, &mut out),
            }
        } else {
            match (&mut self.state, to) {
                (State::ToV1(state), Hop::Other) => state.peer_sends(message, &mut out),
                (State::ToV1(state), Hop::Peer) => state.other_sends(message, &mut out),
                (State::ToV2(state), Hop::Other) => state.peer_sends(message, &mut out),
                (State::ToV2(state), Hop::Peer) => state.other_sends(message, &mut out),
            }
        }
        self.deliver(to, out, made);
    }

    /// Adds what a state has made of a message on its way `to` one of the two.
    fn deliver(&mut self, to: Hop, out: Exchange<'_>, made: &mut Translation) {
        made.notes.extend(out.notes);
        for rule in out.rules {
            made.fired.push(FiredRule {
                dialect: V2_DIALECT.into(),
                rule: rule.into(),
            });
        }
        for (hop, message) in out.sent {
            if message.kind == Kind::Request {
                let method = message.method.clone();
                let _ = self.asked[hop as usize].insert(message.id.as_id(), method);
            }
            let frame = message.frame(true);
            let frames = match hop {
                Hop::Other => vec![frame],
                Hop::Peer => self.spell(to, frame, made),
            };
            for frame in frames {
                put(made, hop == to, frame);
            }
        }
    }

    /// A message to the peer in the spelling of v2, made of one on its way `to` one of the two.
    fn spell(&mut self, to: Hop, frame: Frame, made: &mut Translation) -> Vec<Frame> {
        let Scanned::Message(at) = scan(&frame, &self.limits) else {
            return vec![frame];
        };
        let spelled = self.table.write(&frame, &at);
        let frames = spelled.frames(&frame);
        made.notes.extend(spelled.notes);
        made.fired.extend(spelled.fired);
        // A request that cannot be spelled was answered in place of the peer.
        for answer in spelled.replies {
            let mut answered = Translation {
                forward: Forward::Frames(Vec::new()),
                ..Translation::default()
            };
            self.convert(Hop::Other, &answer, &mut answered);
            let (to_other, to_peer) = (answered.frames(&answer), answered.replies);
            made.notes.extend(answered.notes);
            to_other
                .into_iter()
                .for_each(|frame| put(made, to == Hop::Other, frame));
            to_peer
                .into_iter()
                .for_each(|frame| put(made, to == Hop::Peer, frame));
        }
        frames
    }
}

/// Adds what is forwarded, or sent back.
fn put(made: &mut Translation, is_forwarded: bool, frame: Frame) {
    match is_forwarded {
        true => push(made, frame),
        false => made.replies.push(frame),
    }
}

fn push(made: &mut Translation, frame: Frame) {
    if let Forward::Frames(frames) = &mut made.forward {
        frames.push(frame);
    }
}
