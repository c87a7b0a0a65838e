//! The way of a message from its link to what becomes of it: a request is remembered, the request of
//! an answer is found, and the message is sent on.

use std::time::Instant;

use smallvec::SmallVec;

use super::mcp_kinds::McpKinds;
use super::non_json::is_stray;
use super::session_id::SessionId;
use super::state::{Conversation, OpenRequest};
use super::trace_context;
use super::{MessageSummary, Note, Outbox};
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Envelope, Frame, Id, IdBuf, Kind, Rejected, Scanned, Side, member, scan};

impl Conversation {
    /// Handles a frame that `from` has sent.
    ///
    /// What nearly all messages pass from here to the outbox is inlined, each step in the one before:
    /// as calls it costs a message of 160 bytes a tenth more.
    pub fn handle_frame(&mut self, from: Side, mut frame: Frame, now: Instant, out: &mut Outbox) {
        self.now = now;
        self.note_heard(from, out);
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
            self.held.push_back((frame, self.now));
            return;
        }
        self.handle_scanned(from, frame, scanned, out);
        if !self.held.is_empty() {
            self.release_held(out);
        }
        if !self.early.creating.is_empty() {
            self.settle_updates(out);
        }
        if self.dialects.is_weighing_due(self.limits.translation_bytes) {
            self.bound_translation(out);
        }
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
                self.queue(from.other(), frame, out);
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

    /// Takes a canonical message, unless it waits for an agent that is started again.
    #[inline(always)]
    pub(super) fn pass_message(
        &mut self,
        from: Side,
        frame: Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) {
        if self.attends_restart && self.take_for_restart(from, &frame, at, out) {
            return;
        }
        self.claim_message(from, frame, at, out);
    }

    /// Takes a message of which it is not known whether its session is claimed.
    #[inline(always)]
    pub(super) fn claim_message(
        &mut self,
        from: Side,
        frame: Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) {
        match self.claims.is_on {
            false => self.take_message(from, frame, at, out),
            true => self.claim_and_pass(from, frame, at, out),
        }
    }

    /// [`Conversation::claim_message`] once its session is claimed.
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
                    && (!self.links.agent_is_child && self.take_exit_notice(&frame, envelope, out)
                        || self.early.holds() && self.hold_update(&frame, envelope, out));
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
        if from == Side::Client {
            self.note_cancel(&frame, envelope, out);
        } else if self.renames_requests
            && let Some(renamed) = self.cancel_renamed(&frame, envelope)
        {
            return self.send(Side::Client, renamed, None, out);
        }
        self.pass_on(from.other(), frame, envelope, None, out);
    }

    /// Handles the messages of a batch one by one.
    fn handle_batch(&mut self, from: Side, frame: &Frame, out: &mut Outbox) {
        let batches = &mut self.batches[from as usize];
        let converts = self.dialects.converted().is_some();
        let messages = converts.then(|| batches.take_apart(frame, &self.limits));
        let Some(messages) = messages.flatten() else {
            out.note(Note::Batch { from });
            return self.send(from, reply::batch(), None, out);
        };
        for (scanned, frame) in messages {
            self.handle_scanned(from, frame, &scanned, out);
        }
        let (batches, longest) = (
            &mut self.batches[from as usize],
            self.longest[from as usize],
        );
        out.send_all(from, batches.take_complete(longest, &self.limits));
    }

    fn request(&mut self, from: Side, frame: Frame, envelope: &Envelope, out: &mut Outbox) {
        if self.login.role.is_some() {
            return self.request_beside_logins(from, frame, envelope, out);
        }
        self.pass_request(from, frame, envelope, out);
    }

    #[inline(always)]
    pub(super) fn pass_request(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        out: &mut Outbox,
    ) {
        if from == Side::Agent && self.own_answers.is_owed(from.other(), envelope.id(&frame)) {
            return self.request_renamed(&frame, envelope, out);
        }
        self.open_request(from, frame, envelope, None, out);
    }

    /// Passes on a request of the agent under another id: the client still owes the answer to one
    /// with its own, which must not answer this one.
    #[cold]
    fn request_renamed(&mut self, frame: &Frame, envelope: &Envelope, out: &mut Outbox) {
        let id = format!("\"acp-relay:{}\"", self.requests);
        let renamed = envelope.with_id(frame, Id::of_json(id.as_bytes()));
        let own_id = envelope.id(frame).to_owned();
        self.renames_requests = true;
        if let Scanned::Message(at) = scan(&renamed, &self.limits) {
            self.open_request(Side::Agent, renamed, &at, Some(own_id), out);
        }
    }

    /// The agent's cancellation of a request that was passed on under another id, with that id.
    #[cold]
    fn cancel_renamed(&self, frame: &Frame, envelope: &Envelope) -> Option<Frame> {
        let meant = member(envelope.body(frame)?, "requestId")
            .filter(|_| envelope.has_method(frame, "$/cancel_request"))?;
        let mut open = self.pending[Side::Agent as usize].iter();
        let is_meant = |own: &IdBuf| own.as_id() == Id::of_json(meant);
        let (id, _) = open.find(|(_, open)| open.own_id.as_deref().is_some_and(is_meant))?;
        Some(reply::cancel_request(id.as_id()))
    }

    /// Remembers a request and passes it on. `own_id` is the id that its sender gave it, if it has
    /// another one.
    fn open_request(
        &mut self,
        from: Side,
        frame: Frame,
        envelope: &Envelope,
        own_id: Option<IdBuf>,
        out: &mut Outbox,
    ) {
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
            let id = own_id.unwrap_or_else(|| id.to_owned());
            self.answer_for_peer(from, &id, method, &reason, out);
            out.extend_summaries(summary);
            self.close_client_at_end(out);
            return;
        }
        let topic = summary.as_ref().map(|summary| summary.topic);
        let session = match method {
            b"session/prompt"
            | b"session/request_permission"
            | b"session/load"
            | b"session/resume"
            | b"terminal/create"
            | b"terminal/release" => SessionId::named(&frame, envelope),
            _ => None,
        };
        let prompted = session.as_ref().filter(|_| method == b"session/prompt");
        let waits = from == Side::Client && self.own_answers.holds(id, prompted);
        let prompted = prompted.filter(|_| waits).cloned();
        let is_held = waits || from == Side::Client && self.awaits_exit();
        let open = OpenRequest {
            method: SmallVec::from_slice(method),
            topic: topic.unwrap_or_default(),
            requested_at: self.now,
            is_unsent: is_held,
            offered: None,
            namesake: None,
            session,
            cancelled: None,
            kept: match from {
                Side::Client => self.kept_of(&frame, envelope),
                Side::Agent => None,
            },
            own_id: own_id.clone().map(Box::new),
        };
        let inserted = self.pending[from as usize].insert(id, open);
        let refused = match inserted {
            Ok(()) if is_held && !waits => return out.extend_summaries(summary),
            Ok(()) => {
                match from {
                    Side::Client => {
                        self.note_session(&frame, envelope, out);
                        self.note_mcp_servers(&frame, envelope, out);
                    }
                    Side::Agent => self.release_before(&frame, envelope, out),
                }
                let marked = self.mark(summary.as_ref(), &frame, envelope);
                out.extend_summaries(summary);
                let (frame, envelope) = marked.unwrap_or((frame, *envelope));
                if waits {
                    let id = envelope.id(&frame).to_owned();
                    return self.own_answers.hold(id, prompted, frame, self.now);
                }
                self.watch_request(to, envelope.raw_method(&frame));
                return self.pass_on(to, frame, &envelope, None, out);
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
        let id = own_id.as_ref().map_or(id, IdBuf::as_id);
        self.send(from, reply::error(id, &reason), None, out);
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
        if from == Side::Client && self.take_page_answer(&frame, envelope) {
            return;
        }
        let to = from.other();
        let id = envelope.id(&frame);
        if self.own_answers.is_owed(from, id) {
            self.take_late_answer(from, id, out);
        } else if let Some((original_id, answered)) = self.pending[to as usize].remove(id) {
            self.unmatched[from as usize] = 0;
            self.agent_answered |= from == Side::Agent;
            self.note_resumed(to, &answered, envelope.kind == Kind::Result);
            if envelope.kind == Kind::Result {
                self.remember_answer(to, &frame, envelope);
                if *answered.method == *b"initialize" {
                    self.mcp_kinds = McpKinds::of(envelope.body(&frame).unwrap_or_default());
                }
                if answered.kept.is_some() {
                    self.remember_restart(&answered, &frame, envelope);
                }
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
            let original_id = answered.own_id.map_or(original_id, |own| *own);
            if original_id.as_id().json() == id.json() {
                self.pass_on(to, frame, envelope, method, out);
                return;
            }
            out.note(Note::RestoredId { from });
            let frame = envelope.with_id(&frame, original_id.as_id());
            if let Scanned::Message(envelope) = scan(&frame, &self.limits) {
                self.pass_on(to, frame, &envelope, method, out);
            }
        } else if envelope.kind == Kind::Error && matches!(id, Id::Absent | Id::Null) {
            out.note(Note::ErrorWithoutId { from });
            self.send(to, frame, Some(envelope), out);
        } else if self.links.agent_is_replayed {
            self.send(to, frame, Some(envelope), out);
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
