//! The end of what the client has cancelled, where a side does not end it: the relay answers in its
//! place, and drops its own answer when that comes. An agent gets no second prompt of a session before
//! it has ended the first one.
//!
//! The protocol demands these answers: of the agent `cancelled` as the reason why the turn stopped, of
//! the client `cancelled` as the outcome of each open permission
//! (<https://agentclientprotocol.com/protocol/prompt-turn#cancellation>).

use std::time::{Duration, Instant};

use super::own_answers::NEXT_PROMPT;
use super::session_id::SessionId;
use super::state::{Cancelled, Conversation, OpenRequest};
use super::{Note, Outbox};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Envelope, Frame, Id, IdBuf, Scanned, Side, member, scan};

/// How long the agent is out of reach before a cancelled request is answered.
const OUTAGE: Duration = Duration::from_secs(30);

/// How long a client has to answer the permissions of a turn that it has cancelled.
const QUESTION: Duration = Duration::from_secs(2);

/// For how long messages of the agent may postpone the end of a cancelled turn.
const POSTPONED: Duration = Duration::from_secs(120);

impl Conversation {
    /// Remembers what a notification of the client cancels. A recording has its own times.
    pub(super) fn note_cancel(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        if self.links.agent_is_replayed {
            return;
        }
        let now = self.now;
        let asked = &mut self.pending[Side::Client as usize];
        if at.has_method(frame, "session/cancel") {
            let session = SessionId::named(frame, at);
            let is_of = |request: &OpenRequest, method: &[u8]| {
                *request.method == *method && request.session == session
            };
            for request in asked.values_mut() {
                if is_of(request, b"session/prompt") {
                    request.cancelled.get_or_insert((Cancelled::Turn, now));
                }
            }
            for request in self.pending[Side::Agent as usize].values_mut() {
                if is_of(request, b"session/request_permission") {
                    request.cancelled.get_or_insert((Cancelled::Question, now));
                }
            }
        } else if at.has_method(frame, "$/cancel_request")
            && let Some(id) = member(at.body(frame).unwrap_or_default(), "requestId")
            && let Some(request) = asked.get_mut(Id::of_json(id))
        {
            request.cancelled.get_or_insert((Cancelled::Request, now));
        } else {
            return;
        }
        self.end_cancelled(out);
    }

    /// When [`Conversation::expire_cancelled`] may have something to do.
    pub(super) const fn cancelled_due(&self) -> Option<Instant> {
        self.own_answers.due
    }

    /// Answers what is due, and ends an agent that a prompt has waited for too long.
    pub(super) fn expire_cancelled(&mut self, out: &mut Outbox) {
        if self.cancelled_due().is_none_or(|due| self.now < due) {
            return;
        }
        self.end_cancelled(out);
        let is_there = self.link_status.lost_since().is_none();
        let mut waiting = self.own_answers.waiting.iter().filter(|_| is_there);
        if waiting.any(|one| one.since + NEXT_PROMPT <= self.now) {
            let how = "has not ended a turn that the client had cancelled, and gets no further \
                       prompt of that session before";
            if self.can_come_back() {
                return self.replace_agent(how, out);
            }
            self.own_answers.waiting.clear();
            self.close_for_violation(Side::Agent, how.to_owned(), out);
        }
    }

    /// The agent's connection is lost, or restored: what waits for it gets its time again.
    pub(super) fn reschedule_cancelled(&mut self, out: &mut Outbox) {
        for waiting in &mut self.own_answers.waiting {
            waiting.since = self.now;
        }
        self.end_cancelled(out);
    }

    /// Drops an answer of `from` that the relay has given already.
    pub(super) fn take_late_answer(&mut self, from: Side, id: Id<'_>, out: &mut Outbox) {
        let id = id.to_owned();
        self.own_answers.owed[from as usize].retain(|owed| owed.id != id);
        out.note(Note::LateAnswer { from, id });
        if from == Side::Agent {
            self.release_waiting(out);
        }
    }

    /// Answers what is due, and sets when to look again.
    pub(super) fn end_cancelled(&mut self, out: &mut Outbox) {
        self.own_answers.due = None;
        for asker in [Side::Client, Side::Agent] {
            let mut due = Vec::new();
            for (id, request) in self.pending[asker as usize].iter() {
                match self.ends_at(request) {
                    Some(at) if at <= self.now => due.push(id.clone()),
                    Some(at) => self.own_answers.look_at(at),
                    None => {}
                }
            }
            for id in due {
                if let Some((id, request)) = self.pending[asker as usize].remove(id.as_id()) {
                    self.answer_cancelled(asker, id, &request, out);
                }
            }
        }
        let waiting = self.own_answers.waiting.iter().map(|one| one.since);
        if let Some(first) = waiting.min()
            && self.link_status.lost_since().is_none()
        {
            self.own_answers.look_at(first + NEXT_PROMPT);
        }
    }

    /// When the relay answers a request, if it was cancelled.
    fn ends_at(&self, request: &OpenRequest) -> Option<Instant> {
        let (how, since) = request.cancelled?;
        if how == Cancelled::Question {
            return Some(since + QUESTION);
        }
        if request.is_unsent {
            return Some(since);
        }
        if let Some(lost) = self.link_status.lost_since() {
            return Some(since.max(lost + OUTAGE));
        }
        let grace = self.limits.cancel_grace;
        if how == Cancelled::Request || grace.is_zero() {
            return None;
        }
        let heard = self.heard[Side::Agent as usize];
        Some((heard.max(since) + grace).min(since + grace.max(POSTPONED)))
    }

    fn answer_cancelled(
        &mut self,
        asker: Side,
        id: IdBuf,
        request: &OpenRequest,
        out: &mut Outbox,
    ) {
        let asked_as = request.own_id.as_deref().unwrap_or(&id).clone();
        let how = request.cancelled.map(|(how, _)| how);
        if how == Some(Cancelled::Request) {
            let reason = match request.is_unsent {
                true => unsent(),
                false => {
                    let what =
                        "the request was cancelled, and the agent has been out of reach for 30 s";
                    Reason::new(reply::CANCELLED, what)
                        .at(ErrorSource::Agent)
                        .delivered(Delivered::Unknown)
                }
            };
            self.answer_for_peer(asker, &asked_as, &request.method, &reason, out);
        } else {
            self.answer_cancelled_turn(asker, asked_as, out);
        }
        self.silence.forget(asker.other(), &id);
        if request.is_unsent {
            self.own_answers.waiting.retain(|waiting| waiting.id != id);
        } else {
            let session = request
                .session
                .clone()
                .filter(|_| how == Some(Cancelled::Turn));
            self.own_answers.expect(asker.other(), id, session);
        }
        self.continue_shutdown(out);
    }

    /// Answers a prompt that the client has cancelled, or a permission of such a turn.
    pub(super) fn answer_cancelled_turn(&mut self, asker: Side, id: IdBuf, out: &mut Outbox) {
        let answer = match asker {
            Side::Client => reply::cancelled_turn_for_peer(id.as_id()),
            Side::Agent => reply::cancelled_permission(id.as_id()),
        };
        out.note(Note::Cancelled { to: asker, id });
        self.send(asker, answer, None, out);
    }

    /// Sends the requests whose answers can be told from those that are owed.
    fn release_waiting(&mut self, out: &mut Outbox) {
        let waiting = std::mem::take(&mut self.own_answers.waiting);
        for one in waiting {
            if self.own_answers.holds(one.id.as_id(), one.session.as_ref()) {
                self.own_answers.waiting.push_back(one);
                continue;
            }
            let open = self.pending[Side::Client as usize].get_mut(one.id.as_id());
            if let Some(open) = open
                && let Scanned::Message(at) = scan(&one.frame, &self.limits)
            {
                open.is_unsent = false;
                self.watch_request(Side::Agent, at.raw_method(&one.frame));
                self.pass_on(Side::Agent, one.frame, &at, None, out);
            }
        }
    }
}

/// The reason for a request that was cancelled in time.
pub(super) fn unsent() -> Reason {
    let what = "the request was cancelled before it was sent";
    Reason::new(reply::CANCELLED, what).at(ErrorSource::Agent)
}
