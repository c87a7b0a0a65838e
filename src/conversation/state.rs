//! The state of a conversation, and the handling of each message.
//!
//! `shutdown` decides how a conversation ends, and `rejected` handles what is not a message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::batch_state::Batch;
use super::claims_state::Claims;
use super::dialect_options::DialectOptions;
use super::early_state::EarlyUpdates;
use super::held_input::HeldInput;
use super::link_status::LinkStatus;
use super::non_json::{LogRedaction, NonJsonOutput, is_stray};
use super::salvage_state::Salvage;
use super::shutdown_state::Shutdown;
use super::summary::{SessionHash, Topic, TraceAssigner};
use super::trace_context;
use super::{MessageSummary, Note, Outbox};
use jsonrpc::reply::{self, ErrorSource, Reason};
use jsonrpc::{
    Envelope, Frame, Id, IdBuf, Kind, Limits, PendingRequests, Rejected, Scanned, Scanner, Side,
    scan,
};
use policy::MessagePolicy;

/// One conversation: what each side may still do, and which requests are open.
#[derive(Debug)]
pub struct Conversation {
    /// When what is handled at present happened.
    pub(super) now: Instant,
    pub(super) limits: Arc<Limits>,
    pub(super) links: LinkTraits,
    /// The scanner of each side's messages.
    scanners: [Scanner; 2],
    /// Open requests, by the side that sent them.
    pub(super) pending: [PendingRequests<OpenRequest>; 2],
    pub(super) shutdown: Shutdown,
    pub(super) link_status: LinkStatus,
    pub(super) dialects: DialectOptions,
    /// What the client sends before the agent has answered `initialize`.
    pub(super) held: HeldInput,
    /// The claims of sessions, and what waits for them.
    pub(super) claims: Claims,
    /// Notifications for sessions that the client does not know yet.
    pub(super) early: EarlyUpdates,
    /// Batches of each side that wait for answers.
    pub(super) batches: [Vec<Batch>; 2],
    /// Checks and changes the messages between the two; `None` when all pass unchanged.
    pub(super) policy: Option<Box<MessagePolicy>>,
    /// Chooses the trace of a request that belongs to none.
    marker: Option<Box<dyn TraceAssigner>>,
    /// Requests so far, of both sides.
    requests: u64,
    /// Answers that a translator gave in place of a side, and that are still to be handled.
    pub(super) returned: VecDeque<(Side, Frame)>,
    /// Errors of ours in place of a side, in its dialect, for requests that were too long for it.
    pub(super) refused: VecDeque<(Side, Frame)>,
    /// The longest message that each side takes, if it has announced that.
    pub(super) longest: [usize; 2],
    /// Stray lines since the agent's last JSON message.
    pub(super) strays: usize,
    /// Messages in lines with something else.
    pub(super) salvage: Salvage,
    /// What the agent printed before its first message.
    pub(super) printed: NonJsonOutput,
    /// Over-long messages, by side.
    pub(super) oversized: [usize; 2],
    /// Answers that matched no request, since that side's last answer that did.
    unmatched: [usize; 2],
    /// The client has sent a request.
    pub(super) client_asked: bool,
    /// The agent has answered a request.
    pub(super) agent_answered: bool,
    /// The agent's address, if the client may know it.
    agent_name: Option<String>,
}

/// A request in flight. Its answer carries no method.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// As spelled between its quotes.
    pub(super) method: SmallVec<[u8; 32]>,
    /// What it is about, for observers.
    topic: Topic,
    requested_at: Instant,
    /// It was never sent to the other side.
    pub(super) is_unsent: bool,
    /// An answer in a line with other text, and when it counts.
    pub(super) offered: Option<(Frame, Instant)>,
    /// An answer with the same id that was meanwhile sent to the side that owes this one's.
    pub(super) namesake: Option<Frame>,
    /// The session of a prompt.
    pub(super) session: SessionHash,
    /// The client has cancelled it.
    pub(super) cancelled: Option<Cancelled>,
}

/// How the client has cancelled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// The turn, by `session/cancel`.
    Turn,
    /// This request, by `$/cancel_request`.
    Request,
}

/// The properties of the two links. By default they are network connections, both of whose
/// directions end together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTraits {
    /// The client is the program that has started the relay, on stdin and stdout. A relay that is
    /// stopped has no other one, and will not connect to the agent again.
    pub client_on_stdio: bool,
    /// The client can still receive after it has ended its stream.
    pub client_half_close: bool,
    /// We can end our stream to the agent and still receive from it.
    pub agent_half_close: bool,
    /// The agent is a process we started, whose exit we will see.
    pub agent_is_child: bool,
    /// The agent is a recording. Texts that are not messages are part of the replay and pass in
    /// both directions, and so do answers that match no request.
    pub agent_is_replayed: bool,
    /// The client cannot see the agent's exit in another way, so it is sent a notification.
    pub announce_exit: bool,
    /// The agent can be started, or connected to, once more.
    pub agent_restarts: bool,
    /// The agent is reached through another relay, whose own errors are not the agent's.
    pub agent_is_relay: bool,
}

impl Conversation {
    /// A new conversation, which begins now.
    #[must_use]
    pub fn new(
        limits: Arc<Limits>,
        links: LinkTraits,
        dialects: DialectOptions,
        now: Instant,
    ) -> Self {
        Self {
            now,
            pending: [
                PendingRequests::new(limits.in_flight),
                PendingRequests::new(limits.in_flight),
            ],
            scanners: [
                Scanner::new(Arc::clone(&limits)),
                Scanner::new(Arc::clone(&limits)),
            ],
            limits,
            links,
            shutdown: Shutdown::default(),
            link_status: LinkStatus::default(),
            dialects,
            held: HeldInput::default(),
            claims: Claims::default(),
            early: EarlyUpdates::default(),
            batches: [Vec::new(), Vec::new()],
            policy: None,
            marker: None,
            requests: 0,
            returned: VecDeque::new(),
            refused: VecDeque::new(),
            longest: [usize::MAX; 2],
            strays: 0,
            salvage: Salvage::default(),
            printed: NonJsonOutput::default(),
            oversized: [0; 2],
            unmatched: [0; 2],
            client_asked: false,
            agent_answered: false,
            agent_name: None,
        }
    }

    /// Whether the agent has not answered `initialize` yet.
    #[must_use]
    pub fn awaits_version(&self) -> bool {
        self.dialects.awaits_version()
    }

    /// Notes whether the agent's link has proved to lead to another relay.
    pub const fn set_agent_is_relay(&mut self, is_relay: bool) {
        self.links.agent_is_relay = is_relay;
    }

    /// Sets the policy between the two sides.
    #[must_use]
    pub fn with_policy(mut self, policy: Option<Box<MessagePolicy>>) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the longest message that each side takes. A longer one is not sent, and the conversation
    /// goes on.
    #[must_use]
    pub const fn with_longest(mut self, longest: [usize; 2]) -> Self {
        self.longest = longest;
        self
    }

    /// Sets the longest message that this side takes from now on.
    pub const fn set_longest(&mut self, to: Side, longest: usize) {
        self.longest[to as usize] = longest;
    }

    /// Sets the function that redacts secrets in what the agent printed, before it is quoted.
    #[must_use]
    pub fn with_log_redaction(mut self, redact: LogRedaction) -> Self {
        self.printed.redact = redact;
        self
    }

    /// Sets what adds a trace context to requests without one.
    #[must_use]
    pub fn with_marker(mut self, marker: Option<Box<dyn TraceAssigner>>) -> Self {
        self.marker = marker;
        self
    }

    /// Handles a frame that `from` has sent.
    ///
    /// What nearly all messages pass from here to the outbox is inlined, each step in the one before:
    /// as calls it costs a message of 160 bytes a tenth more.
    pub fn handle_frame(&mut self, from: Side, mut frame: Frame, now: Instant, out: &mut Outbox) {
        self.now = now;
        let scanned = self.scanners[from as usize].scan(&mut frame);
        out.record_envelope(&scanned);
        if self.salvage.cut[from as usize].is_some() {
            let Some(rest) = self.join_line(from, frame, &scanned, out) else {
                return;
            };
            frame = rest;
        }
        self.take_frame(from, frame, &scanned, out);
    }

    /// Handles a frame whose envelope is known.
    #[inline(always)]
    pub(super) fn take_frame(
        &mut self,
        from: Side,
        frame: Frame,
        scanned: &Scanned,
        out: &mut Outbox,
    ) {
        self.dialects.set_time(self.now);
        let is_message = matches!(scanned, Scanned::Message(_));
        if from == Side::Client && is_message && self.dialects.awaits_version() {
            self.held.push(frame, self.now);
            return;
        }
        self.handle_scanned(from, frame, scanned, out);
        if !self.held.is_empty() {
            self.release_held(out);
        }
        self.settle_updates(out);
        self.bound_translation(out);
    }

    /// Handles a frame that does not wait.
    #[inline(always)]
    pub(super) fn handle_scanned(
        &mut self,
        from: Side,
        frame: Frame,
        scanned: &Scanned,
        out: &mut Outbox,
    ) {
        match scanned {
            Scanned::Message(envelope) if self.dialects.is_canonical(from) => {
                self.handle_message(from, frame, envelope, out);
            }
            Scanned::Message(envelope) => self.translate_in(from, frame, envelope, out),
            Scanned::Batch | Scanned::Invalid(_) if self.may_pass_raw(from.other(), &frame) => {
                self.enqueue(from.other(), frame, out);
            }
            Scanned::Batch => self.handle_batch(from, &frame, out),
            Scanned::Invalid(error) if self.salvage(from, &frame, error, out) => {}
            Scanned::Invalid(error) if from == Side::Agent && is_stray(error) => {
                self.handle_stray(&frame, out);
            }
            Scanned::Invalid(error) => self.handle_frame_error(from, error.clone(), self.now, out),
        }
        if !(self.returned.is_empty() && self.refused.is_empty()) {
            self.handle_returned(out);
        }
    }

    /// Sends a canonical message to `to`, translated if `to` uses a dialect.
    pub(super) fn forward(
        &mut self,
        to: Side,
        frame: Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) {
        if self.dialects.is_canonical(to) {
            self.enqueue(to, frame, out);
        } else {
            self.translate_out(to, frame, envelope, out);
        }
    }

    /// [`Conversation::forward`] for a message whose envelope is not known.
    pub(super) fn send(&mut self, to: Side, frame: Frame, out: &mut Outbox) {
        if self.dialects.is_canonical(to) {
            self.enqueue(to, frame, out);
        } else {
            self.send_translated(to, frame, out);
        }
    }

    /// Queues a frame for `to`, in its own dialect. Drops and notes it when `to` is gone.
    pub(super) fn enqueue(&mut self, to: Side, frame: Frame, out: &mut Outbox) {
        if frame.len() > self.longest[to as usize] {
            self.refuse_too_long(to, &frame, out);
        } else if self.shutdown.receives(to) {
            if self.batches[to as usize].is_empty() || !self.collect(to, &frame, out) {
                out.send(to, frame);
            }
        } else {
            out.note(Note::Undeliverable { to });
        }
    }

    /// Answers `initialize` with this address of the agent if the agent cannot answer it.
    #[must_use]
    pub fn with_agent_name(mut self, name: Option<String>) -> Self {
        self.agent_name = name;
        self
    }

    /// Answers a request of `requester` in place of the side it was for.
    pub(super) fn answer_for_peer(
        &mut self,
        requester: Side,
        id: &IdBuf,
        method: &[u8],
        reason: &Reason,
        out: &mut Outbox,
    ) {
        out.note(Note::Answered {
            to: requester,
            id: id.clone(),
            method: String::from_utf8_lossy(method).into_owned(),
            code: reason.code,
        });
        let of_agent = requester == Side::Client && reason.source == ErrorSource::Agent;
        let error = match &self.agent_name {
            Some(name) if of_agent && method == b"initialize" => {
                reply::error(id.as_id(), &reason.of(name))
            }
            _ => reply::error(id.as_id(), reason),
        };
        self.send(requester, error, out);
    }

    #[inline(always)]
    pub(super) fn handle_message(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) {
        if from == Side::Agent {
            self.strays = 0;
            self.printed.end();
            self.extend_deadline();
        }
        if self.dialects.is_negotiating() {
            return self.negotiate(from, frame, envelope, out);
        }
        self.pass_message(from, frame, envelope, out);
    }

    /// [`Conversation::pass_message`] once its session is claimed.
    #[inline(always)]
    pub(super) fn take_message(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) {
        match envelope.kind {
            Kind::Request => self.request(from, frame, envelope, out),
            Kind::Notification => {
                let is_taken = from == Side::Agent
                    && (self.take_exit_notice(&frame, envelope, out)
                        || self.hold_update(&frame, envelope, out));
                if !is_taken {
                    self.pass_notification(from, frame, envelope, out);
                }
            }
            Kind::Result | Kind::Error => {
                self.answer(from, frame, envelope, out);
                self.continue_shutdown(out);
            }
        }
    }

    #[inline(always)]
    pub(super) fn pass_notification(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) {
        let traces = out.needs().traces;
        out.summarise(|| {
            MessageSummary::of_call(from, &frame, envelope, self.now)
                .traced(&frame, envelope, traces)
        });
        if from == Side::Client && !self.links.agent_is_child {
            self.note_cancel(&frame, envelope, out);
        }
        self.apply_policy(from.other(), frame, envelope, None, out);
    }

    fn request(&mut self, from: Side, frame: Frame, envelope: &Envelope, out: &mut Outbox) {
        let to = from.other();
        let id = envelope.id(&frame);
        let method = envelope.raw_method(&frame);
        self.requests += 1;
        self.client_asked |= from == Side::Client;
        if from == Side::Client && envelope.has_method(&frame, "initialize") {
            let params = envelope.body(&frame).unwrap_or_default();
            self.link_status.read_capability(params);
        }
        let summary = out.needs().summaries.then(|| {
            let mut summary = MessageSummary::of_call(from, &frame, envelope, self.now);
            summary.topic.request = self.requests;
            summary.traced(&frame, envelope, out.needs().traces)
        });
        if let Some(reason) = self.refusal(from) {
            self.answer_for_peer(from, &id.to_owned(), method, &reason, out);
            out.extend_summaries(summary);
            self.close_client_at_end(out);
            return;
        }
        let topic = summary.as_ref().map(|summary| summary.topic);
        let is_held = from == Side::Client && self.awaits_exit();
        let open = OpenRequest {
            method: SmallVec::from_slice(method),
            topic: topic.unwrap_or_default(),
            requested_at: self.now,
            is_unsent: is_held,
            offered: None,
            namesake: None,
            session: match *method == *b"session/prompt" {
                true => SessionHash::named(&frame, envelope).unwrap_or_default(),
                false => SessionHash::default(),
            },
            cancelled: None,
        };
        let refused = match self.pending[from as usize].insert(id, open) {
            Ok(()) if is_held => return out.extend_summaries(summary),
            Ok(()) => {
                match from {
                    Side::Client => self.note_session(&frame, envelope, out),
                    Side::Agent => self.release_before(&frame, envelope, out),
                }
                let marked = self.mark(summary.as_ref(), &frame, envelope);
                out.extend_summaries(summary);
                let (frame, envelope) = marked.unwrap_or((frame, *envelope));
                return self.apply_policy(to, frame, &envelope, None, out);
            }
            Err(refused) => refused,
        };
        let reason = match refused {
            Rejected::Reused => {
                let id = id.to_owned();
                out.note(Note::ReusedId { from, id });
                let what = "a request with this id is still in flight";
                Reason::new(reply::INVALID_REQUEST, what)
            }
            Rejected::Full => {
                out.note(Note::Overloaded { from });
                let limit = self.limits.in_flight;
                let what = format!("too many requests are open (the limit is {limit})");
                Reason::new(reply::OVERLOADED, what).retryable()
            }
        };
        self.send(from, reply::error(id, &reason), out);
    }

    /// The request with an added trace context; `None` when it stays unchanged.
    fn mark(
        &mut self,
        summary: Option<&MessageSummary>,
        frame: &Frame,
        at: &Envelope,
    ) -> Option<(Frame, Envelope)> {
        let marker = self.marker.as_mut()?;
        let parent = marker.parent(summary?)?;
        let marked = trace_context::with_parent(frame, at, &parent)?;
        // If the addition made it too long, it is sent without.
        match scan(&marked, &self.limits) {
            Scanned::Message(at) => Some((marked, at)),
            Scanned::Batch | Scanned::Invalid(_) => None,
        }
    }

    fn answer(&mut self, from: Side, frame: Frame, envelope: &Envelope, out: &mut Outbox) {
        let to = from.other();
        let id = envelope.id(&frame);
        if let Some((original_id, answered)) = self.pending[to as usize].remove(id) {
            self.unmatched[from as usize] = 0;
            self.agent_answered |= from == Side::Agent;
            if envelope.kind == Kind::Result {
                self.remember_answer(to, &frame, envelope);
            }
            let traces = out.needs().traces;
            out.summarise(|| {
                let waited = self.now.saturating_duration_since(answered.requested_at);
                let topic = answered.topic;
                MessageSummary::of_answer(from, &frame, envelope, topic, waited, self.now)
                    .traced(&frame, envelope, traces)
            });
            if from == Side::Agent {
                self.note_answered(&original_id, &answered.method, &frame, envelope);
            }
            let method = Some(&answered.method[..]);
            if original_id.as_id().json() == id.json() {
                self.apply_policy(to, frame, envelope, method, out);
                return;
            }
            out.note(Note::RestoredId { from });
            let frame = envelope.with_id(&frame, original_id.as_id());
            if let Scanned::Message(envelope) = scan(&frame, &self.limits) {
                self.apply_policy(to, frame, &envelope, method, out);
            }
        } else if envelope.kind == Kind::Error && matches!(id, Id::Absent | Id::Null) {
            out.note(Note::ErrorWithoutId { from });
            self.forward(to, frame, envelope, out);
        } else if self.links.agent_is_replayed {
            self.forward(to, frame, envelope, out);
        } else {
            out.note(Note::UnknownAnswer {
                from,
                id: id.to_owned(),
            });
            self.unmatched[from as usize] += 1;
            if self.unmatched[from as usize] >= self.limits.invalid_messages {
                let reason = "sent too many answers that match no open request".to_owned();
                self.close_for_violation(from, reason, out);
            }
        }
    }
}
