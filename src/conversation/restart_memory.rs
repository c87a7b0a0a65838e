//! What is remembered of a conversation so that its agent can be started again: what the two sides
//! have agreed, the sessions and their parameters, and the settings that the client saw last.

use std::time::Duration;

use super::restart_state::{Agreed, Asked, MAX_BYTES, QUIET, Restart, Step};
use super::session_id::SessionId;
use super::state::{Conversation, OpenRequest};
use super::{Note, Outbox};
use jsonrpc::{Envelope, Frame, Side, member, member_text, text};

/// A login that takes longer may have asked a person.
const UNATTENDED: Duration = Duration::from_secs(5);

/// Updates that a client has which has seen the session before.
const HISTORY: [&[u8]; 8] = [
    b"user_message_chunk",
    b"agent_message_chunk",
    b"agent_thought_chunk",
    b"tool_call",
    b"tool_call_update",
    b"plan",
    b"plan_update",
    b"plan_removed",
];

/// Requests whose parameters are needed when their answers come.
const KEPT: [&[u8]; 12] = [
    b"initialize",
    b"authenticate",
    b"logout",
    b"session/new",
    b"session/load",
    b"session/resume",
    b"session/fork",
    b"session/close",
    b"session/delete",
    b"session/set_mode",
    b"session/set_model",
    b"session/set_config_option",
];

/// Updates of what is set again.
const SETTINGS: [&[u8]; 2] = [b"current_mode_update", b"config_option_update"];

impl Conversation {
    /// What has to be remembered of a request of the client until its answer comes.
    pub(super) fn kept_of(&self, frame: &Frame, at: &Envelope) -> Option<Box<[u8]>> {
        let method = at.raw_method(frame);
        let is_kept = match self.restart {
            Some(_) => KEPT.contains(&method),
            None => self.may_restart && method == b"initialize",
        };
        let params = at.body(frame).filter(|params| params.len() <= MAX_BYTES);
        Some(params.filter(|_| is_kept)?.into())
    }

    /// Remembers what the agent has answered.
    pub(super) fn remember_restart(&mut self, request: &OpenRequest, frame: &Frame, at: &Envelope) {
        let Some(params) = &request.kept else {
            return;
        };
        let result = at.body(frame).unwrap_or_default();
        if *request.method == *b"initialize" {
            return self.remember_agreement(params, result);
        }
        let Some(restart) = &mut self.restart else {
            return;
        };
        let named = |object: &[u8]| member_text(object, "sessionId").map(|id| SessionId::of(&id));
        let session = named(params);
        match &request.method[..] {
            b"authenticate" => {
                let took = self.now.saturating_duration_since(request.requested_at);
                restart.authenticate = (took < UNATTENDED).then(|| params.clone());
            }
            b"logout" => restart.authenticate = None,
            b"session/new" | b"session/fork" => {
                if let Some(id) = named(result) {
                    restart.learn(id, params.clone(), result);
                }
            }
            b"session/load" | b"session/resume" => {
                if let Some(id) = session {
                    restart.learn(id, params.clone(), result);
                }
            }
            b"session/close" | b"session/delete" => {
                if let Some(id) = session {
                    restart.forget(&id);
                }
            }
            _ => {
                let known = session.and_then(|id| restart.session(&id));
                let Some(known) = known else { return };
                let value = |name| member(params, name);
                known.set_mode(value("modeId"));
                known.set_model(value("modelId"));
                if let (Some(id), Some(value)) =
                    (member(params, "configId"), member(params, "value"))
                {
                    known.set_option(id, value);
                }
                known.read_state(result);
            }
        }
        self.attend_restart();
    }

    /// Remembers what the two sides have agreed, if the agent can bring back sessions. Only those of v1
    /// are brought back.
    fn remember_agreement(&mut self, params: &[u8], result: &[u8]) {
        let version = member(result, "protocolVersion").unwrap_or_default();
        let capabilities = member(result, "agentCapabilities").unwrap_or_default();
        let is_v1 = version == b"1" && self.dialects.converted() != Some(Side::Agent);
        if let Some(method) = returning_method(capabilities)
            && is_v1
            && result.len() <= MAX_BYTES
        {
            let agreed = Agreed {
                params: params.into(),
                version: version.into(),
                capabilities: capabilities.into(),
                method,
            };
            match &mut self.restart {
                Some(restart) => restart.agreed = agreed,
                None => self.restart = Some(Box::new(Restart::new(agreed))),
            }
        }
    }

    /// Takes an update that belongs to a session that is being brought back, and learns settings from
    /// others.
    pub(super) fn take_restart_update(
        &mut self,
        frame: &Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) -> bool {
        let Some(restart) = &mut self.restart else {
            return false;
        };
        let Some(update) = update_of(frame, at) else {
            return false;
        };
        let Some(kind) = kind_of(update) else {
            return false;
        };
        let is_setting = SETTINGS.contains(&kind);
        let restored = match &restart.step {
            Step::Asked(_, Asked::Session(id)) => Some((id, true)),
            Step::Asked(_, Asked::Setting(id, _)) => Some((id, false)),
            Step::Settling(id, ..) => Some((id, true)),
            _ => None,
        };
        if !is_setting && restored.is_none() {
            return false;
        }
        let Some(session) = SessionId::named(frame, at) else {
            return false;
        };
        match restored {
            Some((id, is_loading)) if *id == session => {
                let is_known = is_setting || is_loading && HISTORY.contains(&kind);
                if is_known {
                    out.note(Note::RepeatedUpdate);
                    if let Step::Settling(.., until) = &restart.step {
                        restart.due = Some((self.now + QUIET).min(*until));
                    }
                }
                is_known
            }
            _ => {
                let known = restart.session(&session).filter(|_| is_setting);
                if let Some(known) = known {
                    known.set_mode(member(update, "currentModeId"));
                    known.read_state(update);
                }
                false
            }
        }
    }
}

/// The method that brings back a session of an agent with these capabilities.
fn returning_method(capabilities: &[u8]) -> Option<&'static str> {
    let of_sessions = member(capabilities, "sessionCapabilities").unwrap_or_default();
    let resumes = member(of_sessions, "resume").is_some_and(|resume| resume.starts_with(b"{"));
    let loads = member(capabilities, "loadSession") == Some(b"true");
    match resumes {
        true => Some("session/resume"),
        false => loads.then_some("session/load"),
    }
}

/// The member `update` of the parameters of `session/update`.
fn update_of<'a>(frame: &'a Frame, at: &Envelope) -> Option<&'a [u8]> {
    if !at.has_method(frame, "session/update") {
        return None;
    }
    match &at.index {
        Some(index) => {
            let update = index.last_member("update", frame.as_bytes())?;
            Some(update.value.of(frame.as_bytes()))
        }
        None => member(at.body(frame)?, "update"),
    }
}

/// What kind of update it is. Nearly always its first member says that.
fn kind_of(update: &[u8]) -> Option<&[u8]> {
    const NAME: &str = "sessionUpdate";
    let value = match text::members(update).next() {
        Some((name, value)) if text::same_name(name, NAME) => value,
        _ => member(update, NAME)?,
    };
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}
