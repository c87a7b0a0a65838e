//! The state of a conversation, and the handling of each message.
//!
//! `shutdown` decides how a conversation ends, `pending` remembers requests, and `rejected` handles
//! what is not a message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::babble::{Babble, Discretion};
use super::ending::Ending;
use super::gist::Topic;
use super::pending::{Pending, Refusal};
use super::speech::Speech;
use super::trail::{self, Marker};
use super::unfit::is_stray;
use super::{Gist, Note, Outbox, excuse};
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Envelope, Frame, Id, IdBuf, Kind, Limits, Scanner, Shape, Side, scan};
use crate::policy::Border;

/// One conversation: what each side may still do, and which requests are open.
#[derive(Debug)]
pub struct Core {
    pub(super) limits: Arc<Limits>,
    pub(super) manners: Manners,
    /// The scanner of each side's messages.
    scanners: [Scanner; 2],
    /// Open requests, by the side that sent them.
    pub(super) pending: [Pending; 2],
    pub(super) ending: Ending,
    pub(super) speech: Speech,
    /// Checks and changes the messages between the two; `None` when all pass unchanged.
    pub(super) border: Option<Box<Border>>,
    /// Chooses the trace of a request that belongs to none.
    marker: Option<Box<dyn Marker>>,
    /// Requests so far, of both sides.
    asked: u64,
    /// Answers that a translator gave in place of a side, and that are still to be handled.
    pub(super) returned: VecDeque<(Side, Frame)>,
    /// Stray lines since the agent's last JSON message.
    pub(super) strays: usize,
    /// What the agent printed before its first message.
    pub(super) babble: Babble,
    /// Over-long messages, by side.
    pub(super) offences: [usize; 2],
    /// Answers that matched no request, since that side's last answer that did.
    unknown: [usize; 2],
    /// The agent has answered a request.
    pub(super) agent_answered: bool,
}

/// The properties of the two links. By default they are network connections, both of whose
/// directions end together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// The client can still receive after it has ended its stream.
    pub client_half_close: bool,
    /// We can end our stream to the agent and still receive from it.
    pub agent_half_close: bool,
    /// The agent is a process we started, whose exit we will see.
    pub agent_is_child: bool,
    /// The agent is a recording. Texts that are not messages are part of the replay and pass in
    /// both directions, and so do answers that match no request.
    pub agent_is_played: bool,
    /// The client cannot see the agent's exit in another way, so it is sent a notification.
    pub announce_exit: bool,
}

impl Core {
    /// A new conversation.
    #[must_use]
    pub fn new(limits: Arc<Limits>, manners: Manners, speech: Speech) -> Self {
        Self {
            pending: [
                Pending::new(limits.in_flight),
                Pending::new(limits.in_flight),
            ],
            scanners: [
                Scanner::new(Arc::clone(&limits)),
                Scanner::new(Arc::clone(&limits)),
            ],
            limits,
            manners,
            ending: Ending::default(),
            speech,
            border: None,
            marker: None,
            asked: 0,
            returned: VecDeque::new(),
            strays: 0,
            babble: Babble::default(),
            offences: [0; 2],
            unknown: [0; 2],
            agent_answered: false,
        }
    }

    /// Sets the policy between the two sides.
    #[must_use]
    pub fn with_border(mut self, border: Option<Box<Border>>) -> Self {
        self.border = border;
        self
    }

    /// Sets the function that redacts secrets in what the agent printed, before it is quoted.
    #[must_use]
    pub fn with_discretion(mut self, discretion: Discretion) -> Self {
        self.babble.discretion = discretion;
        self
    }

    /// Sets what adds a trace context to requests without one.
    #[must_use]
    pub fn with_marker(mut self, marker: Option<Box<dyn Marker>>) -> Self {
        self.marker = marker;
        self
    }

    /// Handles a frame that `from` has sent.
    pub fn handle_frame(&mut self, from: Side, mut frame: Frame, now: Instant, out: &mut Outbox) {
        let shape = self.scanners[from as usize].scan(&mut frame);
        out.heard(&shape);
        match shape {
            // By reference: it is larger than many messages.
            Shape::One(ref envelope) if self.speech.is_canonical(from) => {
                self.message(from, frame, envelope, now, out);
            }
            Shape::One(ref envelope) => self.interpret(from, frame, envelope, now, out),
            Shape::Batch | Shape::Bad(_) if self.may_say_anything(from.other(), &frame) => {
                self.hand_over(from.other(), frame, out);
            }
            Shape::Batch => {
                out.note(Note::Batch { from });
                self.say(from, reply::batch(), out);
            }
            Shape::Bad(flaw) if from == Side::Agent && is_stray(&flaw) => {
                self.stray(&frame, now, out);
            }
            Shape::Bad(flaw) => self.handle_flaw(from, flaw, now, out),
        }
        self.hear_returned(now, out);
    }

    /// Sends a canonical message to `to`, translated if `to` uses a dialect.
    pub(super) fn pass_on(
        &mut self,
        to: Side,
        frame: Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) {
        if self.speech.is_canonical(to) {
            self.hand_over(to, frame, out);
        } else {
            self.translate(to, frame, envelope, out);
        }
    }

    /// [`Conversation::pass_on`] for a message whose envelope is not known.
    pub(super) fn say(&mut self, to: Side, frame: Frame, out: &mut Outbox) {
        if self.speech.is_canonical(to) {
            self.hand_over(to, frame, out);
        } else {
            self.say_translated(to, frame, out);
        }
    }

    /// Queues a frame for `to`, in its own dialect. Drops and notes it when `to` is gone.
    pub(super) fn hand_over(&mut self, to: Side, frame: Frame, out: &mut Outbox) {
        if self.ending.hears(to) {
            out.say(to, frame);
        } else {
            out.note(Note::Undeliverable { to });
        }
    }

    /// Answers a request of `asker` in place of the side it was for.
    pub(super) fn answer_for_peer(
        &mut self,
        asker: Side,
        id: &IdBuf,
        method: &[u8],
        reason: &Reason,
        out: &mut Outbox,
    ) {
        let method = String::from_utf8_lossy(method).into_owned();
        out.note(Note::Answered {
            to: asker,
            id: id.clone(),
            method,
            code: reason.code,
        });
        self.say(asker, reply::error(id.as_id(), reason), out);
    }

    pub(super) fn message(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        now: Instant,
        out: &mut Outbox,
    ) {
        let to = from.other();
        if from == Side::Agent {
            self.strays = 0;
            self.babble.end();
            self.heard_agent(now);
        }
        match envelope.kind {
            Kind::Request => self.request(from, frame, envelope, now, out),
            Kind::Notification => {
                if from == Side::Agent && self.take_exit_notice(&frame, envelope, out) {
                    return;
                }
                let traced = out.wants_trails();
                out.gist(|| {
                    Gist::of_call(from, &frame, envelope, now).traced(&frame, envelope, traced)
                });
                self.carry(to, frame, envelope, None, out);
            }
            Kind::Result | Kind::Error => {
                self.answer(from, frame, envelope, now, out);
                self.settle(now, out);
            }
        }
    }

    fn request(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        now: Instant,
        out: &mut Outbox,
    ) {
        let to = from.other();
        let id = envelope.id(&frame);
        let method = envelope.raw_method(&frame);
        self.asked += 1;
        let gist = out.wants_gists().then(|| {
            let mut gist = Gist::of_call(from, &frame, envelope, now);
            gist.topic.ask = self.asked;
            gist.traced(&frame, envelope, out.wants_trails())
        });
        if let Some(reason) = self.unanswerable(from) {
            if let Some(gist) = gist {
                out.gist(|| gist);
            }
            self.answer_for_peer(from, &id.to_owned(), method, &reason, out);
            return;
        }
        let topic = gist.as_ref().map_or_else(Topic::default, |gist| gist.topic);
        match self.pending[from as usize].ask(id, method, topic, now) {
            Ok(()) if from == Side::Client && self.awaits_exit() => {
                self.ending.unsent.insert(id.to_owned());
                if let Some(gist) = gist {
                    out.gist(|| gist);
                }
            }
            Ok(()) => {
                let marked = self.marked(gist.as_ref(), &frame, envelope);
                if let Some(gist) = gist {
                    out.gist(|| gist);
                }
                match marked {
                    None => self.carry(to, frame, envelope, None, out),
                    Some((frame, envelope)) => self.carry(to, frame, &envelope, None, out),
                }
            }
            Err(Refusal::Reused) => {
                out.note(Note::ReusedId {
                    from,
                    id: id.to_owned(),
                });
                let reason = Reason::new(
                    reply::INVALID_REQUEST,
                    "a request with this id is still in flight",
                );
                self.say(from, reply::error(id, &reason), out);
            }
            Err(Refusal::Full) => {
                out.note(Note::Overloaded { from });
                self.say(
                    from,
                    reply::error(id, &excuse::overloaded(self.limits.in_flight)),
                    out,
                );
            }
        }
    }

    /// The request with an added trace context; `None` when it stays unchanged.
    fn marked(
        &mut self,
        gist: Option<&Gist>,
        frame: &Frame,
        at: &Envelope,
    ) -> Option<(Frame, Envelope)> {
        let marker = self.marker.as_mut()?;
        let mark = marker.mark(gist?)?;
        let marked = trail::with_parent(frame, at, &mark)?;
        // If the addition made it too long, it is sent without.
        match scan(&marked, &self.limits) {
            Shape::One(at) => Some((marked, at)),
            Shape::Batch | Shape::Bad(_) => None,
        }
    }

    fn answer(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        now: Instant,
        out: &mut Outbox,
    ) {
        let to = from.other();
        let id = envelope.id(&frame);
        if let Some(answered) = self.pending[to as usize].answer(id) {
            self.unknown[from as usize] = 0;
            self.agent_answered |= from == Side::Agent;
            let traced = out.wants_trails();
            out.gist(|| {
                let waited = now.saturating_duration_since(answered.asked);
                let topic = answered.topic;
                Gist::of_answer(from, &frame, envelope, topic, waited, now)
                    .traced(&frame, envelope, traced)
            });
            match answered.spelled {
                Some(asked) => {
                    out.note(Note::RestoredId { from });
                    let frame = envelope.with_id(&frame, asked.as_id());
                    if let Shape::One(envelope) = scan(&frame, &self.limits) {
                        self.carry(to, frame, &envelope, Some(&answered.method), out);
                    }
                }
                None => self.carry(to, frame, envelope, Some(&answered.method), out),
            }
        } else if envelope.kind == Kind::Error && matches!(id, Id::Absent | Id::Null) {
            out.note(Note::Complaint { from });
            self.pass_on(to, frame, envelope, out);
        } else if self.manners.agent_is_played {
            self.pass_on(to, frame, envelope, out);
        } else {
            out.note(Note::UnknownAnswer {
                from,
                id: id.to_owned(),
            });
            self.unknown[from as usize] += 1;
            if self.unknown[from as usize] >= self.limits.strays {
                let blame = "sent too many answers that match no open request".to_owned();
                self.expel(from, blame, now, out);
            }
        }
    }
}
