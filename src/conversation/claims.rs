//! Sessions are claimed before a request of the client that names one reaches the agent, and before an
//! answer that names a new one reaches the client: where a relay is one of several, another one may
//! have a session. Here batches are taken apart and messages are canonical, so that no other spelling
//! passes.

use std::time::Instant;

use super::Outbox;
use super::claims_state::{Waiting, session_of};
use super::state::Conversation;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Envelope, Frame, Side};

impl Conversation {
    /// Has sessions claimed before messages that name them pass.
    #[must_use]
    pub fn claiming(mut self, is_on: bool) -> Self {
        self.claims.is_on = is_on;
        self
    }

    /// Whether messages of that side wait for a claim; it is not read meanwhile.
    #[must_use]
    pub fn is_claiming(&self, from: Side) -> bool {
        !self.claims.waiting[from as usize].is_empty()
    }

    /// The session to claim, once; [`Self::handle_claimed`] is for the result.
    pub fn next_claim(&mut self) -> Option<String> {
        let claims = &mut self.claims;
        if claims.asked.is_some() {
            return None;
        }
        let mut sides = [Side::Client, Side::Agent].into_iter();
        let from = sides.find(|from| !claims.waiting[*from as usize].is_empty())?;
        claims.asked = Some(from);
        claims.waiting[from as usize].front()?.session.clone()
    }

    /// The sessions that are not claimed any more.
    pub fn released(&mut self) -> Vec<String> {
        std::mem::take(&mut self.claims.released)
    }

    pub(super) fn claim_and_pass(
        &mut self,
        from: Side,
        frame: Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) {
        let session = match session_of(from, &frame, at) {
            Ok(session) => session,
            Err(why) => return self.refuse_session(from, &frame, at, why, out),
        };
        let at = *at;
        let waits = self.is_claiming(from) || self.claims.is_new(session.as_ref());
        let waiting = Waiting { frame, at, session };
        match waits {
            true => self.claims.waiting[from as usize].push_back(waiting),
            false => self.pass_waiting(from, waiting, out),
        }
    }

    /// The session of [`Self::next_claim`] is claimed, or cannot be for this reason.
    pub fn handle_claimed(&mut self, claimed: Result<(), String>, now: Instant, out: &mut Outbox) {
        self.now = now;
        let Some(from) = self.claims.asked.take() else {
            return;
        };
        let first = self.claims.waiting[from as usize].pop_front();
        match (first, claimed) {
            (Some(first), Ok(())) => self.pass_waiting(from, first, out),
            (Some(first), Err(why)) => {
                self.refuse_session(from, &first.frame, &first.at, &why, out);
            }
            (None, _) => {}
        }
        while let Some(next) = self.claims.waiting[from as usize].front()
            && !self.claims.is_new(next.session.as_ref())
            && let Some(next) = self.claims.waiting[from as usize].pop_front()
        {
            self.pass_waiting(from, next, out);
        }
        self.handle_returned(out);
        self.settle_updates(out);
    }

    /// The agent is gone: what waits is passed on, and answered as everything else.
    pub(super) fn stop_claiming(&mut self, out: &mut Outbox) {
        self.claims.is_on = false;
        self.claims.asked = None;
        for from in [Side::Agent, Side::Client] {
            for next in std::mem::take(&mut self.claims.waiting[from as usize]) {
                self.take_message(from, next.frame, &next.at, out);
            }
        }
    }

    fn pass_waiting(&mut self, from: Side, next: Waiting, out: &mut Outbox) {
        let Waiting { frame, at, session } = next;
        self.claims.pass(from, &frame, &at, session.as_ref());
        self.take_message(from, frame, &at, out);
    }

    /// Answers the client's request, of which a message is the answer or which it is.
    fn refuse_session(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        why: &str,
        out: &mut Outbox,
    ) {
        let (id, method) = match from {
            Side::Client => (at.id(frame).to_owned(), at.raw_method(frame).to_vec()),
            Side::Agent => match self.pending[Side::Client as usize].remove(at.id(frame)) {
                Some((id, open)) => (id, open.method.to_vec()),
                None => return,
            },
        };
        let message = format!("the session cannot be used on this host: {why}");
        let reason = Reason::new(reply::OVERLOADED, message).retryable();
        self.answer_for_peer(Side::Client, &id, &method, &reason, out);
    }
}
