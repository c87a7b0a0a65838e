//! Requests whose answers do not come: each is told once, and ended after a time if a limit says so.
//!
//! Silence is the time since the last message of the side that owes the answer. It does not run while
//! that side waits itself: for an answer, for the end of a command in a terminal, or for a connection
//! that is lost. While the machine sleeps its clock stands.

use std::time::{Duration, Instant};

use super::known_values::Method;
use super::session_id::SessionId;
use super::silence_state::SilentRequest;
use super::state::{Cancelled, Conversation, OpenRequest};
use super::{Note, Outbox};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{IdBuf, Side};

/// After which silence a request is told that begins something.
const BEGINNING: Duration = Duration::from_secs(15);

/// After which silence any other request is told.
const USUAL: Duration = Duration::from_secs(300);

/// What is due for a request.
enum Due {
    Tell,
    End(&'static str),
}

impl Conversation {
    /// The requests whose answers have not come for long.
    #[must_use]
    pub fn silent_requests(&self) -> &[SilentRequest] {
        &self.silence.told
    }

    /// Whether the client is disconnected, and may come back.
    pub fn set_client_away(&mut self, is_away: bool, now: Instant) {
        if std::mem::replace(&mut self.silence.client_is_away, is_away) && !is_away {
            self.silence.resumed[Side::Client as usize] = now;
        }
    }

    /// When [`Conversation::expire_silence`] may have something to do.
    pub(super) const fn silence_due(&self) -> Option<Instant> {
        self.silence.due
    }

    /// A request of that method was passed on to `side`.
    pub(super) fn watch_request(&mut self, side: Side, method: &[u8]) {
        if !self.links.agent_is_replayed {
            let (told, ended) = self.silence_limits(side, method);
            let first = ended.map_or(told, |(ended, _)| ended.min(told));
            self.silence.look_at(self.now + first);
        }
    }

    /// `to` has received an answer to this request, and does not wait for it any more.
    pub(super) fn note_resumed(&mut self, to: Side, answered: &OpenRequest, is_result: bool) {
        self.silence.resumed[to as usize] = self.now;
        let Some(session) = &answered.session else {
            return;
        };
        let terminals = &mut self.silence.terminals;
        match &answered.method[..] {
            b"terminal/create" if is_result => terminals.push(session.clone()),
            b"terminal/release" => {
                if let Some(at) = terminals.iter().position(|of| of == session) {
                    terminals.swap_remove(at);
                }
            }
            b"session/prompt" => terminals.retain(|of| of != session),
            _ => {}
        }
    }

    /// The agent can be reached again.
    pub(super) fn note_agent_back(&mut self) {
        self.silence.resumed[Side::Agent as usize] = self.now;
    }

    /// A side has sent something.
    #[inline]
    pub(super) fn note_heard(&mut self, side: Side, out: &mut Outbox) {
        self.heard[side as usize] = self.now;
        if self.silence.is_told(side) {
            self.end_silence(side, out);
        }
    }

    /// A side that was silent has sent something.
    #[cold]
    fn end_silence(&mut self, side: Side, out: &mut Outbox) {
        let told = &mut self.silence.told;
        let Some(since) = told
            .iter()
            .filter(|one| one.side == side)
            .map(|one| one.since)
            .min()
        else {
            return;
        };
        told.retain(|one| one.side != side);
        out.note(Note::Heard {
            side,
            after: self.now.saturating_duration_since(since),
        });
        // What is still open may fall silent again.
        self.silence.look_at(self.now + BEGINNING);
    }

    /// Tells and ends what is due.
    pub(super) fn expire_silence(&mut self, out: &mut Outbox) {
        if self.silence.due.is_none_or(|due| self.now < due) {
            return;
        }
        self.silence.due = None;
        for side in [Side::Agent, Side::Client] {
            let mut due = Vec::new();
            let mut next: Option<Instant> = None;
            for (id, request) in self.pending[side.other() as usize].iter() {
                match self.silence_of(side, id, request) {
                    Ok(what) => due.push((id.clone(), what)),
                    Err(at) => next = next.into_iter().chain(at).min(),
                }
            }
            if let Some(next) = next {
                self.silence.look_at(next);
            }
            for (id, what) in due {
                match what {
                    Due::Tell => self.tell_silence(side, id, out),
                    Due::End(limit) => self.end_silent(side, &id, limit, out),
                }
            }
        }
    }

    /// Since when `side` owes the answer to a request and could give it.
    fn silent_since(&self, side: Side, request: &OpenRequest) -> Instant {
        let heard = self.heard[side as usize].max(self.silence.resumed[side as usize]);
        heard.max(request.requested_at)
    }

    /// Whether a side that owes the answer to a request waits itself.
    fn is_waiting(&self, side: Side, request: &OpenRequest) -> bool {
        match side {
            Side::Client => self.silence.client_is_away,
            Side::Agent => {
                !self.pending[Side::Agent as usize].is_empty()
                    || self.link_status.lost_since().is_some()
                    || request
                        .session
                        .as_ref()
                        .is_some_and(|session| self.silence.terminals.contains(session))
            }
        }
    }

    /// What is due for a request that `side` owes the answer to, or when to look again.
    fn silence_of(
        &self,
        side: Side,
        id: &IdBuf,
        request: &OpenRequest,
    ) -> Result<Due, Option<Instant>> {
        if request.is_unsent || request.cancelled.is_some() {
            return Err(None);
        }
        let (told, ended) = self.silence_limits(side, &request.method);
        if self.is_waiting(side, request) {
            let first = ended.map_or(told, |(ended, _)| ended.min(told));
            return Err(Some(self.now + first));
        }
        let since = self.silent_since(side, request);
        let is_told = self
            .silence
            .told
            .iter()
            .any(|one| one.side == side && one.id == *id);
        if !is_told && since + told <= self.now {
            // What is to be ended as well is looked at again at once.
            return Ok(Due::Tell);
        }
        match ended {
            Some((ended, limit)) if since + ended <= self.now => Ok(Due::End(limit)),
            _ => {
                let ended = ended.map(|(ended, _)| since + ended);
                let told = (!is_told).then(|| since + told);
                Err(ended.into_iter().chain(told).min())
            }
        }
    }

    /// After which silence a request is told; after which it is ended, by which limit.
    fn silence_limits(
        &self,
        side: Side,
        method: &[u8],
    ) -> (Duration, Option<(Duration, &'static str)>) {
        let limits = &self.limits;
        let (told, ended) = match method {
            _ if side == Side::Client => return (USUAL, None),
            b"initialize" | b"session/new" | b"session/load" | b"session/resume"
            | b"session/fork" | b"session/list" => {
                (BEGINNING, (limits.handshake_silence, "handshake-silence"))
            }
            b"session/prompt" => (USUAL, (limits.turn_silence, "turn-silence")),
            _ => return (USUAL, None),
        };
        (told, Some(ended).filter(|(after, _)| !after.is_zero()))
    }

    fn tell_silence(&mut self, side: Side, id: IdBuf, out: &mut Outbox) {
        let Some(request) = self.pending[side.other() as usize].get(id.as_id()) else {
            return;
        };
        let since = self.silent_since(side, request);
        let after = self.now.saturating_duration_since(since);
        let method = String::from_utf8_lossy(&request.method).into_owned();
        if self.link_status.is_wanted() && self.shutdown.receives(Side::Client) {
            let session = request.session.as_ref().map(SessionId::as_str);
            let status = reply::silent(side, &method, session, after);
            self.send(Side::Client, status, None, out);
        }
        self.silence.told.push(SilentRequest {
            side,
            method: Method::named(method.as_bytes()),
            since,
            id,
        });
        out.note(Note::Silent {
            side,
            method,
            after,
        });
        self.silence.look_at(self.now);
    }

    /// Ends a request that the agent owes the answer to.
    fn end_silent(&mut self, side: Side, id: &IdBuf, limit: &'static str, out: &mut Outbox) {
        let asker = side.other();
        let Some(request) = self.pending[asker as usize].get_mut(id.as_id()) else {
            return;
        };
        let method = String::from_utf8_lossy(&request.method).into_owned();
        out.note(Note::GaveUp {
            side,
            method: method.clone(),
            limit,
        });
        if *request.method == *b"session/prompt"
            && let Some(session) = &request.session
        {
            request.cancelled = Some((Cancelled::Turn, self.now));
            let cancel = reply::cancel_session(session.as_str());
            self.send(side, cancel, None, out);
            self.end_cancelled(out);
            return;
        }
        let Some((id, request)) = self.pending[asker as usize].remove(id.as_id()) else {
            return;
        };
        self.silence.forget(side, &id);
        let message = format!("the {side} has sent nothing for too long (--limit {limit})");
        let reason = Reason::new(reply::TIMEOUT, message)
            .at(ErrorSource::Agent)
            .delivered(Delivered::Unknown);
        self.answer_for_peer(asker, &id, &request.method, &reason, out);
        self.own_answers.expect(side, id, None);
        self.settle_updates(out);
        self.continue_shutdown(out);
    }
}
