//! Applies the policy to a message before it is passed on.

use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Envelope, Frame, Kind, Scanned, Side, scan, unescaped};
use policy::Decision;

impl Conversation {
    /// Passes a canonical message on to a side that still receives, if the policy allows it.
    /// `request_method` is the method that an answer is for, as spelled.
    #[inline(always)]
    pub(super) fn apply_policy(
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
            false => self.forward(to, frame, at, out),
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
            return self.forward(to, frame, at, out);
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
            Decision::Unchanged => self.forward(to, frame, at, out),
            Decision::Changed(changed, what) => {
                let method = request_method
                    .unwrap_or_else(|| at.method(&frame))
                    .into_owned();
                out.note(Note::Adjusted { from, method, what });
                self.send(to, changed, out);
            }
            Decision::Denied(why) => {
                let method = request_method.as_deref();
                self.deny(from, &frame, at, method, why, out);
            }
        }
    }

    /// The client's `initialize` as the policy lets it pass when it is sent once more.
    pub(super) fn masked(&mut self, initialize: Frame) -> Frame {
        let Some(policy) = &mut self.policy else {
            return initialize;
        };
        if let Scanned::Message(at) = scan(&initialize, &self.limits)
            && let Decision::Changed(masked, _) =
                policy.decide(Side::Client, &initialize, &at, None)
        {
            return masked;
        }
        initialize
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
        let id = at.id(frame);
        let name = method.clone();
        out.note(Note::Denied { from, method, why });
        let requester = match at.kind {
            Kind::Request => from,
            Kind::Notification => return,
            Kind::Result | Kind::Error => from.other(),
        };
        if at.kind == Kind::Request {
            self.pending[from as usize].remove(id);
        }
        self.answer_for_peer(requester, &id.to_owned(), name.as_bytes(), &reason, out);
    }
}
