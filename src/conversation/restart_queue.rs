//! What the client sends while its agent is started again, or its session is brought back, waits in
//! its order, and is answered if it is cancelled meanwhile or there is no agent in the end.

use super::cancelled::unsent;
use super::restart_state::Step;
use super::session_id::SessionId;
use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::reply::Reason;
use jsonrpc::{Envelope, Frame, Id, Kind, Scanned, Side, member, scan};

impl Conversation {
    /// What the client has sent that waits for an agent that is started again.
    pub(super) fn held_for_restart(&self) -> impl Iterator<Item = &Frame> {
        self.restart.iter().flat_map(|restart| &restart.held)
    }

    /// Takes a message that has to wait for an agent that is started again, or that belongs to its
    /// start. `false` if it goes its usual way.
    pub(super) fn take_for_restart(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) -> bool {
        match (from, at.kind) {
            (Side::Client, Kind::Request | Kind::Notification) => {
                self.hold_for_restart(frame, at, out)
            }
            (Side::Agent, Kind::Result | Kind::Error) => self.take_restart_answer(frame, at, out),
            (Side::Agent, Kind::Notification) => self.take_restart_update(frame, at, out),
            _ => false,
        }
    }

    fn hold_for_restart(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) -> bool {
        let missing = self.missing_session(frame, at);
        if at.kind == Kind::Notification && cancels(frame, at) {
            let was_held = self.cancel_held(frame, at, out);
            return match self.is_agent_in_use() {
                // It is for a turn that runs as well, or may be.
                true if missing.is_none() => false,
                _ => {
                    if !was_held {
                        out.note(Note::Undeliverable { to: Side::Agent });
                    }
                    true
                }
            };
        }
        let Some(restart) = &mut self.restart else {
            return false;
        };
        let is_request = at.kind == Kind::Request;
        match &restart.step {
            Step::Running if missing.is_none() => return false,
            Step::Asked(..) | Step::Settling(..) => restart.held.push_back(frame.clone()),
            _ if !is_request => out.note(Note::Undeliverable { to: Side::Agent }),
            Step::Ending => restart.held.push_back(frame.clone()),
            Step::Down => {
                restart.held.push_back(frame.clone());
                self.begin_restart(out);
            }
            Step::Running => {
                restart.held.push_back(frame.clone());
                self.continue_restart(out);
            }
        }
        true
    }

    /// Ends what a notification of the client cancels, if it is held.
    fn cancel_held(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) -> bool {
        let session =
            SessionId::named(frame, at).filter(|_| at.has_method(frame, "session/cancel"));
        let id = member(at.body(frame).unwrap_or_default(), "requestId")
            .filter(|_| at.has_method(frame, "$/cancel_request"));
        let Some(restart) = self
            .restart
            .as_mut()
            .filter(|_| session.is_some() || id.is_some())
        else {
            return false;
        };
        let (limits, mut cancelled) = (&self.limits, Vec::new());
        restart.held.retain(|held| {
            let at = match scan(held, limits) {
                Scanned::Message(at) if at.kind == Kind::Request => at,
                _ => return true,
            };
            let is_prompt = at.has_method(held, "session/prompt");
            let is_turn = is_prompt && session.is_some() && SessionId::named(held, &at) == session;
            let is_meant = is_turn || id.is_some_and(|id| Id::of_json(id) == at.id(held));
            if is_meant {
                cancelled.push((
                    at.id(held).to_owned(),
                    at.method(held).into_owned(),
                    is_turn,
                ));
            }
            !is_meant
        });
        let was_held = !cancelled.is_empty();
        for (id, method, is_turn) in cancelled {
            match is_turn {
                true => self.answer_cancelled_turn(Side::Client, id, out),
                false => {
                    self.answer_for_peer(Side::Client, &id, method.as_bytes(), &unsent(), out);
                }
            }
        }
        was_held
    }

    /// The session that a message names and that the agent does not know, unless the message brings
    /// it back.
    pub(super) fn missing_session(&self, frame: &Frame, at: &Envelope) -> Option<SessionId> {
        let restart = self.restart.as_ref()?;
        let id = SessionId::named(frame, at)?;
        let is_missing = restart
            .sessions
            .iter()
            .any(|session| session.id == id && !session.is_live);
        let returns = matches!(at.raw_method(frame), b"session/load" | b"session/resume");
        (is_missing && !returns).then_some(id)
    }

    /// Answers what waits for the agent with this error.
    pub(super) fn refuse_for_restart(&mut self, reason: &Reason, out: &mut Outbox) {
        let Some(restart) = &mut self.restart else {
            return;
        };
        for frame in std::mem::take(&mut restart.held) {
            self.refuse_held_frame(&frame, reason, out);
        }
    }

    /// The restart ends, because the client or the relay does.
    pub(super) fn stop_restarting(&mut self, reason: &Reason, out: &mut Outbox) {
        self.refuse_for_restart(reason, out);
        if let Some(restart) = &mut self.restart {
            restart.is_over = true;
            restart.is_restoring = false;
            restart.due = None;
            if restart.step != Step::Down {
                restart.step = Step::Running;
            }
        }
        self.attend_restart();
    }

    pub(super) fn refuse_held_frame(&mut self, frame: &Frame, reason: &Reason, out: &mut Outbox) {
        match scan(frame, &self.limits) {
            Scanned::Message(at) if at.kind == Kind::Request => {
                let (id, method) = (at.id(frame).to_owned(), at.raw_method(frame));
                self.answer_for_peer(Side::Client, &id, method, reason, out);
            }
            _ => out.note(Note::Undeliverable { to: Side::Agent }),
        }
    }
}

/// Whether a notification cancels a turn or a request.
fn cancels(frame: &Frame, at: &Envelope) -> bool {
    at.has_method(frame, "session/cancel") || at.has_method(frame, "$/cancel_request")
}
