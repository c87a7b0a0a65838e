//! Notifications for a session that the client does not know yet.
//!
//! Many agents announce the commands and modes of a session before they answer `session/new`, and
//! many clients drop what names a session that they do not know. So while a `session/new` or
//! `session/fork` of the client is open, such notifications wait, and follow its answer in their
//! order. A history comes before the answer to `session/load`, whose session the client knows.

use super::state::{Conversation, EarlyUpdates};
use super::summary::SessionHash;
use super::{Note, Outbox};
use jsonrpc::{Envelope, Frame, IdBuf, Scanned, Side, scan, text};

/// Open requests that make a session, for each of which is looked with every message. Beyond it
/// nothing is held.
const MAX_CREATING: usize = 64;

/// Known sessions that are remembered. At it all are forgotten: their notifications may wait, too.
const MAX_KNOWN: usize = 4096;

impl EarlyUpdates {
    /// Whether notifications may have to wait.
    pub(super) const fn holds(&self) -> bool {
        !self.creating.is_empty() && !self.passes
    }
}

impl Conversation {
    /// Takes from a request of the client which session it knows, and whether it makes one.
    pub(super) fn note_session(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        self.learn_session(SessionHash::named(frame, at));
        let creates = at.has_method(frame, "session/new") || at.has_method(frame, "session/fork");
        if creates && !self.limits.hold_updates.is_zero() && !self.links.agent_is_replayed {
            if self.early.creating.len() < MAX_CREATING {
                self.early.creating.push(at.id(frame).to_owned());
            } else if !self.early.passes {
                self.stop_holding("too many requests make a session", out);
            }
        }
    }

    /// Takes the sessions that the answer to a request of the client names.
    pub(super) fn note_answered(
        &mut self,
        id: &IdBuf,
        method: &[u8],
        frame: &Frame,
        at: &Envelope,
    ) {
        if self.early.creating.contains(id) {
            self.early.created.extend(SessionHash::named(frame, at));
        } else if method == b"session/list" {
            let sessions = at
                .body(frame)
                .and_then(|body| text::member(body, "sessions"));
            for one in text::items(sessions.unwrap_or_default()) {
                let id = text::member_text(one, "sessionId");
                self.learn_session(id.map(|id| SessionHash::of(&id)));
            }
        }
    }

    /// Holds a notification of the agent if the client does not know its session yet.
    pub(super) fn hold_update(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) -> bool {
        let early = &self.early;
        let session = SessionHash::named(frame, at);
        let Some(session) = session.filter(|one| !early.known.contains(one)) else {
            return false;
        };
        let bytes = early.bytes + frame.weight();
        if early.held.len() >= self.limits.queue_frames || bytes > self.limits.queue_bytes {
            self.stop_holding("they are too many", out);
            return false;
        }
        out.note(Note::HeldUpdate);
        self.early.bytes = bytes;
        self.early.held.push((session, frame.clone()));
        let until = self.now + self.limits.hold_updates;
        self.early.until.get_or_insert(until);
        true
    }

    /// Passes on what is held for the session of a request of the agent, which must not overtake it
    /// and cannot wait: the agent may wait for it before it makes the session.
    pub(super) fn release_before(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let Some(session) = SessionHash::named(frame, at) else {
            return;
        };
        if self.early.held.iter().any(|(of, _)| *of == session) {
            let why = "a request of that session follows";
            out.note(Note::EarlyUpdate { why });
            self.release_updates(|of| of == session, out);
        }
    }

    /// Passes on what is held once it has waited long enough.
    pub(super) fn expire_updates(&mut self, out: &mut Outbox) {
        if self.early.until.is_some_and(|until| until <= self.now) {
            self.stop_holding("the answer has not come in time", out);
        }
    }

    /// Passes on what need not wait any more: what is for sessions that the client knows by now, and
    /// everything once no request that makes a session is open.
    pub(super) fn settle_updates(&mut self, out: &mut Outbox) {
        // The answer may be in a batch that waits for others.
        if !self.batches[Side::Client as usize].is_empty() {
            return;
        }
        let open = &self.pending[Side::Client as usize];
        let creating = &mut self.early.creating;
        creating.retain(|id| open.get(id.as_id()).is_some());
        for session in std::mem::take(&mut self.early.created) {
            self.learn_session(Some(session));
        }
        let early = &mut self.early;
        let is_over = early.creating.is_empty();
        early.passes &= !is_over;
        if !early.held.is_empty() {
            let known = std::mem::take(&mut early.known);
            self.release_updates(|of| is_over || known.contains(&of), out);
            self.early.known = known;
        }
    }

    /// Remembers a session that the client knows.
    fn learn_session(&mut self, session: Option<SessionHash>) {
        if self.early.known.len() >= MAX_KNOWN {
            self.early.known.clear();
        }
        self.early.known.extend(session);
    }

    fn stop_holding(&mut self, why: &'static str, out: &mut Outbox) {
        self.early.passes = true;
        out.note(Note::EarlyUpdate { why });
        self.release_updates(|_| true, out);
    }

    fn release_updates(&mut self, is_due: impl Fn(SessionHash) -> bool, out: &mut Outbox) {
        let (due, held) = std::mem::take(&mut self.early.held)
            .into_iter()
            .partition(|(of, _)| is_due(*of));
        self.early.held = held;
        if self.early.held.is_empty() {
            self.early.until = None;
        }
        for (_, frame) in due {
            self.early.bytes -= frame.weight();
            if let Scanned::Message(at) = scan(&frame, &self.limits) {
                self.pass_notification(Side::Agent, frame, &at, out);
            }
        }
    }
}
