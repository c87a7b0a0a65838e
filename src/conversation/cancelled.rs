//! Answers requests that the client has cancelled while the agent is out of reach: the agent gets the
//! cancellation when it is back, and its own answer is dropped then.

use std::time::{Duration, Instant};

use super::state::{Cancelled, Conversation};
use super::summary::SessionHash;
use super::{Note, Outbox};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Envelope, Frame, Id, Side, member};

/// How long the agent is out of reach before such a request is answered.
const OUTAGE: Duration = Duration::from_secs(30);

impl Conversation {
    /// Remembers what a notification of the client cancels.
    pub(super) fn note_cancel(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let open = &mut self.pending[Side::Client as usize];
        if at.has_method(frame, "session/cancel") {
            let session = SessionHash::named(frame, at).unwrap_or_default();
            for request in open.values_mut() {
                if *request.method == *b"session/prompt" && request.session == session {
                    request.cancelled = Some(Cancelled::Turn);
                }
            }
        } else if at.has_method(frame, "$/cancel_request")
            && let Some(id) = member(at.body(frame).unwrap_or_default(), "requestId")
            && let Some(request) = open.get_mut(Id::of_json(id))
        {
            request.cancelled = Some(Cancelled::Request);
        }
        self.answer_cancelled(out);
    }

    /// When requests that the client has cancelled are answered.
    pub(super) fn cancelled_due(&self) -> Option<Instant> {
        let due = self.link_status.lost_since()? + OUTAGE;
        let mut open = self.pending[Side::Client as usize].iter();
        let is_any = open.any(|(_, request)| request.cancelled.is_some());
        is_any.then_some(due)
    }

    /// Answers requests that the client has cancelled, if the agent has been out of reach for long.
    pub(super) fn answer_cancelled(&mut self, out: &mut Outbox) {
        if self.cancelled_due().is_none_or(|due| self.now < due) {
            return;
        }
        let mut done = Vec::new();
        self.pending[Side::Client as usize].retain(|id, request| {
            let how = request.cancelled;
            done.extend(how.map(|how| (id.clone(), how, request.method.clone())));
            how.is_none()
        });
        for (id, how, method) in done {
            if how == Cancelled::Turn {
                out.note(Note::Cancelled { id: id.clone() });
                self.send(
                    Side::Client,
                    reply::cancelled_turn_for_peer(id.as_id()),
                    None,
                    out,
                );
                continue;
            }
            let what = "the request was cancelled, and the agent has been out of reach for 30 s";
            let reason = Reason::new(reply::CANCELLED, what)
                .at(ErrorSource::Agent)
                .delivered(Delivered::Unknown);
            self.answer_for_peer(Side::Client, &id, &method, &reason, out);
        }
    }
}
