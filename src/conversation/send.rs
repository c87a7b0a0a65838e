//! The way of a message to its receiver: if the policy allows it, in the dialect of that side, and as
//! long as that side takes it.

use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Envelope, Frame, IdBuf, Kind, Scanned, Side, scan, unescaped};
use policy::Decision;

impl Conversation {
    /// Passes a canonical message on to a side that still receives, if the policy allows it.
    /// `request_method` is the method that an answer is for, as spelled.
    #[inline(always)]
    pub(super) fn pass_on(
        &mut self,
        to: Side,
        frame: Frame,
        at: &Envelope,
        request_method: Option<&[u8]>,
        out: &mut Outbox,
    ) {
        let policy = self.policy.as_ref();
        match policy.is_some_and(|policy| policy.concerns(to.other(), at.kind)) {
            true => self.check_policy(to, frame, at, request_method, out),
            false => self.send(to, frame, Some(at), out),
        }
    }

    /// Sends a canonical message to `to` in the dialect of that side; `at` is its envelope, if known.
    #[inline(always)]
    pub(super) fn send(&mut self, to: Side, frame: Frame, at: Option<&Envelope>, out: &mut Outbox) {
        match self.dialects.is_canonical(to) {
            true => self.queue(to, frame, out),
            false => self.translate_out(to, frame, at, out),
        }
    }

    /// Queues a frame for `to`, in its own dialect. Drops and notes it when `to` is gone.
    pub(super) fn queue(&mut self, to: Side, frame: Frame, out: &mut Outbox) {
        let longest = self.longest[to as usize];
        let batches = &mut self.batches[to as usize];
        if frame.len() > longest {
            self.refuse_too_long(to, &frame, out);
        } else if !self.shutdown.receives(to) {
            out.note(Note::Undeliverable { to });
        } else if batches.is_empty() {
            out.send(to, frame);
        } else {
            out.send_all(to, batches.collect(frame, longest, &self.limits));
        }
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
        self.send(requester, error, None, out);
    }

    /// A request of the client as the policy lets it pass when the relay sends it; the error says why
    /// it does not.
    pub(super) fn admitted(&mut self, request: Frame) -> Result<Frame, String> {
        let (Some(policy), Scanned::Message(at)) = (&mut self.policy, scan(&request, &self.limits))
        else {
            return Ok(request);
        };
        match policy.decide(Side::Client, &request, &at, None) {
            Decision::Unchanged => Ok(request),
            Decision::Changed(changed, _) => Ok(changed),
            Decision::Denied(why) => Err(why),
        }
    }

    fn check_policy(
        &mut self,
        to: Side,
        frame: Frame,
        at: &Envelope,
        request_method: Option<&[u8]>,
        out: &mut Outbox,
    ) {
        let Some(policy) = &mut self.policy else {
            return self.send(to, frame, Some(at), out);
        };
        let from = to.other();
        let calls = matches!(at.kind, Kind::Request | Kind::Notification);
        if from == Side::Agent && calls && policy.restricts_calls() {
            let method = at.method(&frame);
            // The client would understand an unknown call as a known one.
            if let Some(why) = self.dialects.misread_as(&method) {
                let why = format!("{method} is denied: {why}");
                self.deny(from, &frame, at, None, why, out);
                return;
            }
        }
        let request_method = request_method.map(unescaped);
        match policy.decide(from, &frame, at, request_method.as_deref()) {
            Decision::Unchanged => self.send(to, frame, Some(at), out),
            Decision::Changed(changed, what) => {
                let method = request_method
                    .unwrap_or_else(|| at.method(&frame))
                    .into_owned();
                out.note(Note::Adjusted { from, method, what });
                self.send(to, changed, None, out);
            }
            Decision::Denied(why) => {
                let method = request_method.as_deref();
                self.deny(from, &frame, at, method, why, out);
            }
        }
    }

    /// Answers a request in place of a message that the policy denies: the request itself, or the one
    /// of `request_method` that it answers.
    fn deny(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        request_method: Option<&str>,
        why: String,
        out: &mut Outbox,
    ) {
        let method = request_method.map_or_else(|| at.method(frame).into_owned(), str::to_owned);
        let reason = Reason::new(reply::POLICY_DENIED, why.clone());
        let mut id = at.id(frame).to_owned();
        let name = method.clone();
        out.note(Note::Denied { from, method, why });
        let requester = match at.kind {
            Kind::Request => from,
            Kind::Notification => return,
            Kind::Result | Kind::Error => from.other(),
        };
        if at.kind == Kind::Request {
            let open = self.pending[from as usize].remove(id.as_id());
            id = open
                .and_then(|(_, open)| open.own_id)
                .map_or(id, |own| *own);
        }
        self.answer_for_peer(requester, &id, name.as_bytes(), &reason, out);
    }

    /// Does not send a message that is longer than `to` takes, whose relay would end the
    /// conversation for it.
    fn refuse_too_long(&mut self, to: Side, frame: &Frame, out: &mut Outbox) {
        let (bytes, limit) = (frame.len(), self.longest[to as usize]);
        out.note(Note::TooLong { to, bytes, limit });
        let Scanned::Message(at) = scan(frame, &self.limits) else {
            return;
        };
        let reason = Reason::too_long(to, bytes, limit);
        match at.kind {
            Kind::Notification => {}
            Kind::Request => {
                let error = reply::error(at.id(frame), &reason);
                self.refused.push_back((to, error));
            }
            Kind::Result | Kind::Error => {
                let error = reply::error(at.id(frame), &reason.delivered(Delivered::Yes));
                let batches = &mut self.batches[to as usize];
                out.send_all(to, batches.collect(error, limit, &self.limits));
            }
        }
    }
}
