//! An agent that has died while its client is there is started again, and gets its sessions back, as
//! soon as the client asks for something.
//!
//! What was open when it died is answered with an error, as always: the relay sends nothing twice. The
//! request that comes then waits until the agent has answered the `initialize` that is remembered, has
//! loaded or resumed the session that the request names, and has the mode, the model and the options
//! that the client saw last: an agent that comes back in its usual mode would edit where the user has
//! set "plan". Of what comes with a loaded session the client has the history already. A session that
//! does not come back is an error, never a fresh one
//! (<https://agentclientprotocol.com/protocol/session-setup#loading-sessions>).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::restart_state::{
    Asked, MAX_STARTS, QUIET, Restart, Setting, Step, WITHIN, lost_capability,
};
use super::session_id::SessionId;
use super::shutdown_state::{self, Cause};
use super::state::Conversation;
use super::{Command, Note, Outbox};
use jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use jsonrpc::{Envelope, Exit, Frame, Id, Kind, Scanned, Side, member, member_text, scan, text};

/// How long an agent that was started again may be silent and owe an answer. The first start of a
/// package runner takes a minute.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long it is waited for a loaded session to be silent.
const MAX_SETTLING: Duration = Duration::from_secs(10);

impl Conversation {
    /// Has the agent started again when it dies, if it can bring back its sessions.
    #[must_use]
    pub fn with_restarts(mut self, restarts: bool) -> Self {
        self.may_restart = restarts && !self.links.agent_is_replayed;
        self
    }

    /// The agent is not started again from now on.
    pub fn forbid_restarts(&mut self) {
        self.may_restart = false;
        if let Some(restart) = &mut self.restart {
            restart.is_over = true;
        }
    }

    /// Whether the agent can be started again and given its sessions.
    #[must_use]
    pub fn is_restartable(&self) -> bool {
        let is_possible = |restart: &Restart| restart.is_possible();
        self.restart.as_deref().is_some_and(is_possible)
    }

    /// Whether the agent, which is ending or has ended, can be started again.
    pub(super) fn can_come_back(&self) -> bool {
        let shutdown = &self.shutdown;
        self.is_restartable()
            && shutdown.sends(Side::Client)
            && shutdown.receives(Side::Client)
            // What waits for a claim belongs to the agent that ends.
            && self.claims.waiting.iter().all(VecDeque::is_empty)
            && matches!(
                shutdown.cause,
                None | Some(Cause::AgentExited | Cause::AgentLeft)
            )
            && match self.links.agent_is_child {
                true => shutdown.exit != Some(Exit::Code(0)),
                // The relay there has reported how its agent ended, and does not start it again.
                false => shutdown.lost && shutdown.exit.is_none(),
            }
    }

    /// The agent is ending. What the client asks meanwhile waits until it is known how.
    pub(super) fn hold_at_end(&mut self) {
        let could = self.can_come_back();
        if let Some(restart) = self.restart.as_mut().filter(|_| could) {
            restart.step = Step::Ending;
            restart.due = None;
            self.attend_restart();
        }
    }

    /// The agent has ended and can come back: what is open is answered, and nothing else ends.
    pub(super) fn suspend(&mut self, out: &mut Outbox) {
        self.shutdown.unreachable[Side::Agent as usize] = true;
        self.take_unsent(Side::Agent, out);
        let mut waiting = Vec::new();
        for one in std::mem::take(&mut self.own_answers.waiting) {
            // It was never sent, so the agent that comes back can have it.
            if self.pending[Side::Client as usize]
                .remove(one.id.as_id())
                .is_some()
            {
                waiting.push(one.frame);
            }
        }
        self.answer_client(out);
        self.answer_agent(
            &Reason::new(reply::AGENT_EXITED, "the agent has ended"),
            out,
        );
        self.own_answers.owed[Side::Agent as usize].clear();
        self.own_answers.due = None;
        self.silence.forget_agent();
        self.salvage.cut[Side::Agent as usize] = None;
        self.strays = 0;
        self.oversized[Side::Agent as usize] = 0;
        self.unmatched[Side::Agent as usize] = 0;
        self.settle_updates(out);
        let is_restoring = self.restart.as_mut().is_some_and(|restart| {
            restart.step = Step::Down;
            restart.due = None;
            for session in &mut restart.sessions {
                session.is_live = false;
            }
            for frame in waiting.into_iter().rev() {
                restart.held.push_front(frame);
            }
            std::mem::take(&mut restart.is_restoring)
        });
        if is_restoring {
            let reason = self.agent_gone(Delivered::No, true).retryable();
            self.refuse_for_restart(&reason, out);
        }
        let shutdown = &mut self.shutdown;
        *shutdown = shutdown_state::Shutdown {
            silent: [false, true],
            unreachable: [false, true],
            exit: shutdown.exit,
            lost: shutdown.lost,
            stderr_tail: std::mem::take(&mut shutdown.stderr_tail),
            agent_error: shutdown.agent_error.take(),
            ..shutdown_state::Shutdown::default()
        };
        out.note(Note::AgentDown);
        self.tell_agent(
            "down",
            "the agent is gone; your next request starts it again",
            out,
        );
        self.attend_restart();
        if self
            .restart
            .as_ref()
            .is_some_and(|restart| !restart.held.is_empty())
        {
            self.begin_restart(out);
        }
        self.handle_returned(out);
    }

    /// Ends an agent that does not do what it has to before the next prompt.
    pub(super) fn replace_agent(&mut self, how: &str, out: &mut Outbox) {
        self.expire_salvage(Some(Side::Agent), out);
        out.note(Note::Ended {
            side: Side::Agent,
            how: how.to_owned(),
            lost: false,
        });
        self.shutdown.agent_error = Some(how.to_owned());
        self.suspend(out);
    }

    /// Whether there is no agent, and the client's next request starts it again.
    pub(super) fn is_agent_down(&self) -> bool {
        let is_down = |restart: &Restart| restart.step == Step::Down;
        self.restart.as_deref().is_some_and(is_down)
    }

    /// The agent could not be started again, or connected to: `why` says it in words.
    pub fn handle_not_restarted(&mut self, why: &str, now: Instant, out: &mut Outbox) {
        self.now = now;
        if !self.is_restoring() {
            let how = format!("cannot be started again: {why}");
            return self.handle_lost(Side::Agent, how, now, out);
        }
        let message = format!("the agent cannot be started again: {why}");
        let reason = Reason::new(reply::PEER_LOST, message).at(ErrorSource::Agent);
        self.fail_restart(&reason.retryable(), out);
    }

    /// Gives up what an agent that was started again has owed for too long.
    pub(super) fn expire_restart(&mut self, out: &mut Outbox) {
        self.end_waits(out);
        self.handle_returned(out);
    }

    fn end_waits(&mut self, out: &mut Outbox) {
        let heard = self.heard[Side::Agent as usize];
        let Some(restart) = &mut self.restart else {
            return;
        };
        if restart.due.is_none_or(|due| self.now < due) {
            return;
        }
        restart.due = None;
        let (id, asked) = match std::mem::take(&mut restart.step) {
            Step::Settling(id, settings, _) => return self.set_next(id, settings, out),
            Step::Asked(id, asked) if heard + PATIENCE <= self.now => (id, asked),
            step => {
                let waits = matches!(step, Step::Asked(..));
                restart.due = waits.then_some(heard + PATIENCE);
                restart.step = step;
                return;
            }
        };
        let waited = PATIENCE.as_secs();
        if matches!(asked, Asked::Initialize | Asked::Authenticate) {
            out.command(Command::Kill);
            let message = format!("the agent was started again and has not answered in {waited} s");
            let reason = Reason::new(reply::TIMEOUT, message).at(ErrorSource::Agent);
            return self.fail_restart(&reason, out);
        }
        self.own_answers.expect(Side::Agent, id, None);
        let why = format!("it has not answered in {waited} s");
        self.fail_session(&asked, &why, out);
    }

    /// When [`Conversation::expire_restart`] may have something to do.
    pub(super) fn restart_due(&self) -> Option<Instant> {
        self.restart.as_ref()?.due
    }

    pub(super) fn attend_restart(&mut self) {
        let attends = |restart: &Restart| restart.attends();
        self.attends_restart = self.restart.as_deref().is_some_and(attends);
    }

    /// Tells the client what becomes of its agent, if it has asked for that.
    fn tell_agent(&mut self, state: &str, detail: &str, out: &mut Outbox) {
        if self.link_status.is_wanted() {
            self.send(Side::Client, reply::agent_status(state, detail), None, out);
        }
    }

    /// Whether there is an agent that has been greeted.
    pub(super) fn is_agent_in_use(&self) -> bool {
        let is_greeted = |restart: &Restart| match &restart.step {
            Step::Running | Step::Settling(..) => true,
            Step::Asked(_, asked) => !matches!(asked, Asked::Initialize | Asked::Authenticate),
            Step::Ending | Step::Down => false,
        };
        self.restart.as_deref().is_some_and(is_greeted)
    }

    /// Whether something is held for an agent that was started again.
    pub(super) fn is_restoring(&self) -> bool {
        let is_restoring = |restart: &Restart| restart.is_restoring;
        self.restart.as_deref().is_some_and(is_restoring)
    }

    /// Starts the agent again for what is held.
    pub(super) fn begin_restart(&mut self, out: &mut Outbox) {
        let now = self.now;
        let Some(restart) = &mut self.restart else {
            return;
        };
        restart.starts.retain(|start| *start + WITHIN > now);
        if restart.starts.len() >= MAX_STARTS {
            restart.is_over = true;
            let cause = self.agent_cause();
            return self.finish(cause, out);
        }
        restart.starts.push_back(now);
        restart.is_restoring = true;
        let attempt = restart.starts.len();
        let params = restart.agreed.params.clone();
        self.shutdown = shutdown_state::Shutdown::default();
        self.heard[Side::Agent as usize] = now;
        out.reopen(Side::Agent);
        out.note(Note::Restarting { attempt });
        out.command(Command::RestartAgent);
        self.tell_agent("restarting", "the agent is started again", out);
        self.ask_agent(&Asked::Initialize, "initialize", &params, out);
    }

    /// Sends a request of the relay to the agent, if the policy lets it pass.
    fn ask_agent(&mut self, asked: &Asked, method: &str, params: &[u8], out: &mut Outbox) {
        let Some(restart) = &mut self.restart else {
            return;
        };
        restart.asked += 1;
        restart.is_restoring = true;
        restart.due = Some(self.now + PATIENCE);
        let id = format!("\"acp-relay:restart:{}\"", restart.asked);
        restart.step = Step::Asked(Id::of_json(id.as_bytes()).to_owned(), asked.clone());
        self.attend_restart();
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#);
        let frame = Frame::from([head.as_bytes(), params, b"}"].concat());
        match self.admitted(frame) {
            Ok(frame) => self.send(Side::Agent, frame, None, out),
            Err(why) => return self.fail_session(asked, &why, out),
        }
        self.handle_returned(out);
    }

    /// Takes the answer to a request of the relay; `false` if it is to another one.
    pub(super) fn take_restart_answer(
        &mut self,
        frame: &Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) -> bool {
        let Some(restart) = &mut self.restart else {
            return false;
        };
        let asked = match &mut restart.step {
            Step::Asked(id, asked) if id.as_id() == at.id(frame) => asked.clone(),
            _ => return false,
        };
        restart.due = None;
        let body = at.body(frame).unwrap_or_default();
        if at.kind == Kind::Error {
            let why = reason_of(body);
            match asked {
                Asked::Initialize => {
                    out.command(Command::Kill);
                    let message =
                        format!("the agent was started again and refuses initialize: {why}");
                    let reason = Reason::new(reply::NOT_RESTORED, message).at(ErrorSource::Agent);
                    self.fail_restart(&reason, out);
                }
                // The session says what is missing, and the client may log in.
                Asked::Authenticate => {
                    restart.authenticate = None;
                    self.continue_restart(out);
                }
                _ => self.fail_session(&asked, &why, out),
            }
            return true;
        }
        match asked {
            Asked::Initialize => self.check_agreed(body, out),
            Asked::Authenticate => self.continue_restart(out),
            Asked::Session(ref id) => {
                let other = member_text(body, "sessionId").filter(|other| *other != id.as_str());
                if let Some(other) = other {
                    let why = format!("it answers for the session {other}");
                    self.fail_session(&asked, &why, out);
                    return true;
                }
                let settings = restart
                    .session(id)
                    .map(|session| session.settings_for(body));
                let (id, settings) = (id.clone(), settings.unwrap_or_default());
                if restart.agreed.method == "session/load" {
                    restart.step = Step::Settling(id, settings, self.now + MAX_SETTLING);
                    restart.due = Some(self.now + QUIET);
                } else {
                    self.set_next(id, settings, out);
                }
            }
            Asked::Setting(id, settings) => self.set_next(id, settings, out),
        }
        true
    }

    /// Compares what an agent that was started again agrees to with what it had agreed to before.
    fn check_agreed(&mut self, result: &[u8], out: &mut Outbox) {
        let Some(restart) = &mut self.restart else {
            return;
        };
        let agreed = &restart.agreed;
        let version = member(result, "protocolVersion").unwrap_or_default();
        let capabilities = member(result, "agentCapabilities").unwrap_or_default();
        let fault = match lost_capability(&agreed.capabilities, capabilities) {
            _ if *agreed.version != *version => Some("another version of the protocol".to_owned()),
            lost => lost.map(|lost| format!("no {lost}")),
        };
        if let Some(fault) = fault {
            restart.is_over = true;
            restart.is_restoring = false;
            let reason = format!("was started again and has {fault}, unlike before");
            return self.close_for_violation(Side::Agent, reason, out);
        }
        match restart.authenticate.clone() {
            Some(params) => self.ask_agent(&Asked::Authenticate, "authenticate", &params, out),
            None => self.continue_restart(out),
        }
    }

    /// Passes on what is held, as far as the agent knows its sessions, and brings back the next one.
    pub(super) fn continue_restart(&mut self, out: &mut Outbox) {
        loop {
            let Some(restart) = &mut self.restart else {
                return;
            };
            restart.step = Step::Running;
            let was_restoring = std::mem::take(&mut restart.is_restoring);
            let first = restart.held.front().cloned();
            let scanned = first.as_ref().map(|frame| scan(frame, &self.limits));
            let missing = match (&first, &scanned) {
                (Some(frame), Some(Scanned::Message(at))) => self.missing_session(frame, at),
                _ => None,
            };
            if let Some(missing) = missing {
                return self.restore_session(missing, out);
            }
            if was_restoring {
                self.tell_agent("back", "the agent is back", out);
            }
            let (Some(frame), Some(scanned)) = (first, scanned) else {
                break;
            };
            self.restart
                .as_mut()
                .and_then(|restart| restart.held.pop_front());
            self.attend_restart();
            if let Scanned::Message(at) = &scanned {
                self.claim_message(Side::Client, frame, at, out);
            }
        }
        self.attend_restart();
    }

    fn restore_session(&mut self, id: SessionId, out: &mut Outbox) {
        let Some(restart) = &mut self.restart else {
            return;
        };
        let method = restart.agreed.method;
        let params = restart
            .session(&id)
            .map(|session| with_session(&id, &session.params));
        self.ask_agent(
            &Asked::Session(id),
            method,
            &params.unwrap_or_default(),
            out,
        );
    }

    /// Makes the next setting of a session again; after the last one, what is held goes on.
    fn set_next(&mut self, id: SessionId, mut settings: Vec<Setting>, out: &mut Outbox) {
        if let Some(setting) = settings.pop() {
            let params = format!("{{\"sessionId\":{},{}}}", quoted(&id), setting.members);
            let asked = Asked::Setting(id, settings);
            return self.ask_agent(&asked, setting.method, params.as_bytes(), out);
        }
        if let Some(session) = self
            .restart
            .as_mut()
            .and_then(|restart| restart.session(&id))
        {
            session.is_live = true;
        }
        out.note(Note::SessionRestored);
        self.continue_restart(out);
    }

    /// The agent could not be started again: what is held is refused, and the next request tries it
    /// again.
    fn fail_restart(&mut self, reason: &Reason, out: &mut Outbox) {
        if let Some(restart) = &mut self.restart {
            restart.step = Step::Down;
            restart.due = None;
            restart.is_restoring = false;
        }
        out.note(Note::NotRestored {
            why: reason.message.clone().into_owned(),
        });
        self.refuse_for_restart(reason, out);
        self.take_unsent(Side::Agent, out);
        self.shutdown.silent[Side::Agent as usize] = true;
        self.shutdown.unreachable[Side::Agent as usize] = true;
        self.answer_agent(reason, out);
        self.tell_agent(
            "down",
            "the agent is not back; your next request tries it again",
            out,
        );
        self.attend_restart();
    }

    /// What was asked has not brought back its session: what is held for that is refused.
    fn fail_session(&mut self, asked: &Asked, why: &str, out: &mut Outbox) {
        out.note(Note::NotRestored {
            why: why.to_owned(),
        });
        let message = format!(
            "the agent has ended and was started again, but the session has not come back: {why}"
        );
        let reason = Reason::new(reply::NOT_RESTORED, message).at(ErrorSource::Agent);
        let session = match asked {
            Asked::Session(id) | Asked::Setting(id, _) => Some(id),
            Asked::Initialize | Asked::Authenticate => None,
        };
        let all = self
            .restart
            .as_mut()
            .map(|one| std::mem::take(&mut one.held));
        for frame in all.unwrap_or_default() {
            let is_of = |at: &Envelope| {
                session.is_none() || SessionId::named(&frame, at).as_ref() == session
            };
            match (scan(&frame, &self.limits), &mut self.restart) {
                (Scanned::Message(at), Some(restart)) if !is_of(&at) => {
                    restart.held.push_back(frame);
                }
                _ => self.refuse_held_frame(&frame, &reason, out),
            }
        }
        self.continue_restart(out);
    }
}

/// What an error says, with its details.
fn reason_of(error: &[u8]) -> String {
    let message = member_text(error, "message").unwrap_or_default();
    let data = member(error, "data").unwrap_or_default();
    let details = text::string(data).or_else(|| member_text(data, "details"));
    let parts = [Some(message), details].into_iter().flatten();
    let whole = parts.collect::<Vec<_>>().join(": ");
    jsonrpc::truncated(&whole, 300)
}

/// Parameters for a session, with its id in place of another one.
fn with_session(id: &SessionId, params: &[u8]) -> Vec<u8> {
    let mut made = format!("{{\"sessionId\":{}", quoted(id)).into_bytes();
    for (name, value) in text::members(params) {
        if !text::same_name(name, "sessionId") {
            made.extend_from_slice(b",\"");
            made.extend_from_slice(name);
            made.extend_from_slice(b"\":");
            made.extend_from_slice(value);
        }
    }
    made.push(b'}');
    made
}

/// The id as a JSON string.
fn quoted(id: &SessionId) -> serde_json::Value {
    id.as_str().into()
}
