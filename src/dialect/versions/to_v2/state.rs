//! The state: requests, notifications and answers of both sides.

use std::time::Instant;

use super::held::Held;
use super::options::Target;
use super::parts::keep_only;
use super::session::Session;
use super::sessions::{Restored, Sessions, close, listed, not_found, object_of};
use super::turns::Prompt;
use super::{permissions, updates};
use crate::dialect::message::Message;
use crate::dialect::pending::MAX_OPEN;
use crate::dialect::text::JsonType;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{
    Exchange, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, error, result,
};
use crate::dialect::versions::json::{array, set, value};
use crate::dialect::versions::traits::{AgentTraits, NewClientTraits};
use crate::jsonrpc::{Id, IdBuf, Kind, PendingRequests};

/// Requests of the client that have the same shape in both versions, or the table converts.
const CLIENT_REQUESTS: [&str; 6] = [
    "authenticate",
    "session/set_title",
    "providers/",
    "mcp/",
    "nes/",
    "document/",
];
/// Notifications of the client.
const CLIENT_NOTES: [&str; 3] = ["mcp/", "nes/", "document/"];
/// Requests of the client for a session that is open.
const NEED_SESSION: [&str; 3] = [
    "session/prompt",
    "session/set_config_option",
    "session/fork",
];

/// The state.
#[derive(Debug)]
pub(in crate::dialect::versions) struct ToV2 {
    client: NewClientTraits,
    sessions: Sessions,
    /// The requests of the client that the agent has not answered.
    requests: PendingRequests<Request>,
    /// The requests of the agent that the client has not answered.
    questions: PendingRequests<Question>,
    /// Updates of sessions that no result has named yet.
    held: Held,
}

/// A request of the client.
#[derive(Debug)]
enum Request {
    /// It makes a session; its params.
    Make(Node<'static>),
    Restore(Restored),
    SetOption(Change),
    /// It ends a session.
    End(String),
    Other,
}

/// A change of a config option.
#[derive(Debug)]
struct Change {
    session: String,
    option: String,
    target: Target,
    value: Node<'static>,
}

/// A request of the agent.
#[derive(Debug)]
struct Question {
    is_permission: bool,
    /// The session and the turn that wait for the answer.
    turn: Option<(Box<str>, u64)>,
}

impl ToV2 {
    pub(in crate::dialect::versions) fn new(client: NewClientTraits, agent: AgentTraits) -> Self {
        Self {
            client,
            sessions: Sessions::new(agent),
            requests: PendingRequests::new(MAX_OPEN),
            questions: PendingRequests::new(MAX_OPEN),
            held: Held::default(),
        }
    }

    /// A message of the peer, which speaks v2.
    pub(in crate::dialect::versions) fn peer_sends<'a>(
        &mut self,
        message: Message<'a>,
        out: &mut Exchange<'a>,
    ) {
        match message.kind {
            Kind::Request => self.request(message, out),
            Kind::Notification => self.client_note(message, out),
            Kind::Result | Kind::Error => self.answer(message, out),
        }
    }

    /// A message of the other side, which speaks v1.
    pub(in crate::dialect::versions) fn other_sends<'a>(
        &mut self,
        message: Message<'a>,
        out: &mut Exchange<'a>,
    ) {
        match message.kind {
            Kind::Request => self.question(message, out),
            Kind::Notification => self.agent_note(message, out),
            Kind::Result | Kind::Error => self.answered(message, out),
        }
    }

    /// When [`ToV2::expire`] is due.
    pub(in crate::dialect::versions) fn deadline(&self) -> Option<Instant> {
        self.sessions
            .iter()
            .filter_map(|session| session.turns.due())
            .min()
    }

    /// Does what is due at `out.now`.
    pub(in crate::dialect::versions) fn expire(&mut self, out: &mut Exchange<'_>) {
        for session in self.sessions.iter_mut() {
            session.turns.expire(out);
        }
    }

    /// A request of the client.
    fn request<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let id = message.id.clone();
        let session = message.session().unwrap_or_default();
        let method = message.method.clone();
        let all = &mut self.sessions;
        if NEED_SESSION.contains(&&*method) && all.is_closing(&session) {
            out.rule("close");
            return out.peer(not_found(&id, &session));
        }
        let request = match &*method {
            _ if !id.as_id().is_value() => {
                let what = "acp-relay: the id of a request is a number or a string";
                return refuse(&id, INVALID_REQUEST, what, out);
            }
            "session/prompt" => match Prompt::read(message) {
                Ok(prompt) => return all.get(&session).turns.prompt(prompt, out),
                Err(why) => return refuse(&id, INVALID_PARAMS, &why, out),
            },
            "session/new" => {
                let params = message.body.to_static();
                out.other(message);
                Some(Request::Make(params))
            }
            "session/fork" => {
                let params = message.body.to_static();
                all.optional(message, out).then_some(Request::Make(params))
            }
            "session/resume" => all.resume(message, out).map(Request::Restore),
            "session/list" => all.list(message, out).then_some(Request::Other),
            "session/close" => all.close(message, out).then_some(Request::End(session)),
            "session/delete" => all.optional(message, out).then_some(Request::End(session)),
            "session/set_config_option" => self.set_option(message, session, out),
            "logout" => all.optional(message, out).then_some(Request::Other),
            "tool_call/cancel" | "terminal/cancel" => {
                let what = "acp-relay: the agent speaks v1 and cannot cancel that";
                return refuse(&id, INVALID_PARAMS, what, out);
            }
            "initialize" => {
                let what = "acp-relay: the connection is initialized already";
                return refuse(&id, INVALID_REQUEST, what, out);
            }
            method if is_passed(method, &CLIENT_REQUESTS) => {
                out.other(message);
                Some(Request::Other)
            }
            method => {
                let what = format!("acp-relay: v2 has no method {method}");
                return refuse(&id, METHOD_NOT_FOUND, &what, out);
            }
        };
        if let Some(request) = request {
            self.held.expects(matches!(request, Request::Make(_)));
            let _ = self.requests.insert(id.as_id(), request);
        }
    }

    /// `session/set_config_option`. Returns what its answer needs, if the agent is asked.
    fn set_option<'a>(
        &mut self,
        mut message: Message<'a>,
        session: String,
        out: &mut Exchange<'a>,
    ) -> Option<Request> {
        let option = message.text_at("/configId").unwrap_or_default();
        let chosen = value(&message.body, "value").unwrap_or(Node::Absent);
        let target = self.sessions.get(&session).options.target(&option);
        let method = match target {
            Target::Option => None,
            Target::Mode => Some(("session/set_mode", "modeId")),
            Target::Model => Some(("session/set_model", "modelId")),
        };
        if let Some((method, name)) = method {
            if chosen.kind() != Some(JsonType::String) {
                let what = format!("acp-relay: the value of the option {option} is a string");
                refuse(&message.id, INVALID_PARAMS, &what, out);
                return None;
            }
            keep_only(&mut message.body, &["sessionId", "_meta"]);
            set(&mut message.body, name, chosen.clone());
            message.method = method.into();
            out.rule("modes");
        }
        out.other(message);
        Some(Request::SetOption(Change {
            session,
            option,
            target,
            value: chosen,
        }))
    }

    /// A notification of the client.
    fn client_note<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let is_passed = match &*message.method {
            "session/cancel" => match message.session().and_then(|id| self.sessions.known(&id)) {
                Some(session) => session.turns.cancel(out),
                None => true,
            },
            "$/cancel_request" => {
                let id = requested(&message);
                let cancel = |session: &mut Session| session.turns.cancel_prompt(&id, out);
                let found = self.sessions.iter_mut().find_map(cancel);
                found.unwrap_or_else(|| self.requests.get(id.as_id()).is_some())
            }
            method => is_passed(method, &CLIENT_NOTES) || ignore(method, out),
        };
        if is_passed {
            out.other(message);
        }
    }

    /// An answer of the client.
    fn answer<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let Some((_, question)) = self.questions.remove(message.id.as_id()) else {
            return out.other(message);
        };
        match question.is_permission {
            true => permissions::answer(message, out),
            false => out.other(message),
        }
        if let Some((session, turn)) = question.turn
            && let Some(session) = self.sessions.known(&session)
        {
            session.turns.replied(turn, out);
        }
    }

    /// A request of the agent.
    fn question<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let (id, method) = (message.id.clone(), message.method.clone());
        let is_permission = method == "session/request_permission";
        let is_question = is_permission || method == "elicitation/create";
        let is_work = is_question || method.starts_with("fs/") || method.starts_with("terminal/");
        let session = self.session_of(&message).filter(|_| is_work);
        let mut session = session.map(|session| self.sessions.get(&session));
        if let Some(session) = &mut session {
            session.turns.work(out);
        }
        let is_closed = session
            .as_ref()
            .is_some_and(|session| session.turns.is_closed());
        let has_options = || array(&message.body, "options").is_some_and(|all| !all.is_empty());
        if is_permission && (is_closed || !has_options()) {
            let cancelled = Node::raw(br#"{"outcome":{"outcome":"cancelled"}}"#);
            out.note(
                DialectEvent::Answered,
                "permission",
                "there is nothing to choose",
            );
            return out.other(result(&id, cancelled));
        }
        match (&*method, &mut session) {
            ("session/request_permission", Some(session)) => {
                permissions::request(session, message, out);
            }
            ("elicitation/create", _) if !self.client.shows(&message) => {
                let what = "acp-relay: the client does not show elicitations of that mode";
                return out.other(error(&id, INVALID_PARAMS, what));
            }
            (method, _) if is_passed(method, &["elicitation/create", "mcp/"]) => out.peer(message),
            _ => {
                let what = format!("acp-relay: the client has no method {method}");
                out.note(DialectEvent::Answered, "methods", what.clone());
                return out.other(error(&id, METHOD_NOT_FOUND, &what));
            }
        }
        let turn = session.filter(|_| is_question).and_then(|session| {
            let turn = session.turns.asked(out)?;
            Some((session.id.clone(), turn))
        });
        let question = Question {
            is_permission,
            turn,
        };
        let _ = self.questions.insert(id.as_id(), question);
    }

    /// The session that a request of the agent is about.
    fn session_of(&self, message: &Message<'_>) -> Option<String> {
        message.session().or_else(|| {
            let id = requested(message);
            let mut all = self.sessions.iter();
            let session = all.find(|session| session.turns.is_turn_of(&id))?;
            Some(session.id.to_string())
        })
    }

    /// A notification of the agent.
    fn agent_note<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let is_passed = match &*message.method {
            "session/update" => return self.update(message, out),
            "$/cancel_request" => self.questions.get(requested(&message).as_id()).is_some(),
            method => is_passed(method, &["elicitation/complete", "mcp/"]) || ignore(method, out),
        };
        if is_passed {
            out.peer(message);
        }
    }

    fn update<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let id = message.session().unwrap_or_default();
        match self.sessions.known(&id) {
            Some(session) if session.turns.is_closed() => {
                out.note(
                    DialectEvent::Dropped,
                    "close",
                    "an update of a session that was closed",
                );
            }
            Some(session) => updates::convert(session, message, out),
            None if self.held.is_expecting() => {
                out.note(
                    DialectEvent::Held,
                    "update",
                    "it waits for the result with its session",
                );
                self.held.add(id, &message);
            }
            None => updates::convert(self.sessions.get(&id), message, out),
        }
    }

    /// An answer of the agent.
    fn answered<'a>(&mut self, mut message: Message<'a>, out: &mut Exchange<'a>) {
        if message.method == "session/prompt" {
            let mut all = self.sessions.iter_mut();
            return match all.find(|session| session.turns.is_turn_of(&message.id)) {
                Some(session) => session.turns.answered(message, out),
                None => out.note(DialectEvent::Swallowed, "prompt", "its session was closed"),
            };
        }
        let Some((id, request)) = self.requests.remove(message.id.as_id()) else {
            return out.peer(message);
        };
        message.id = id;
        match request {
            Request::Make(params) => {
                let made = self.sessions.made(&params, message, out);
                for held in self.held.release(made.as_deref()) {
                    self.update(held, out);
                }
            }
            Request::Restore(restored) => self.sessions.restored(&restored, message, out),
            Request::SetOption(change) => self.option_set(&change, message, out),
            Request::End(session) => self.sessions.gone(&session, message, out),
            Request::Other => match &*message.method {
                "session/list" => listed(message, out),
                "authenticate" | "logout" => close(message, &["_meta"], out),
                _ => out.peer(message),
            },
        }
    }

    /// The answer to a change of a config option: the result has all options.
    fn option_set<'a>(
        &mut self,
        change: &Change,
        mut message: Message<'a>,
        out: &mut Exchange<'a>,
    ) {
        if message.kind == Kind::Result {
            object_of(&mut message);
            let options = &mut self.sessions.get(&change.session).options;
            options.changed(change.target, &change.option, &change.value, &message.body);
            let whole = options.whole().unwrap_or_else(|| Node::raw(b"[]"));
            set(&mut message.body, "configOptions", whole);
        }
        close(message, &["configOptions", "_meta"], out);
    }
}

/// The id that a notification about a request names.
fn requested(message: &Message<'_>) -> IdBuf {
    let json = message.json_at("/requestId").unwrap_or_default();
    Id::of_json(&json).to_owned()
}

/// Answers a request of the client in place of the agent.
fn refuse(id: &IdBuf, code: i32, what: &str, out: &mut Exchange<'_>) {
    out.note(DialectEvent::Answered, "methods", what);
    out.peer(error(id, code, what));
}

/// Drops a notification that the other version does not have.
fn ignore(method: &str, out: &mut Exchange<'_>) -> bool {
    let what = format!("the notification {method}, which the other version does not have");
    out.note(DialectEvent::Dropped, "methods", what);
    false
}

/// Whether a method passes: one of these, one below these that end in `/`, or an extension.
fn is_passed(method: &str, names: &[&str]) -> bool {
    let is_named = |name: &&str| match name.ends_with('/') {
        true => method.starts_with(name),
        false => method == *name,
    };
    method.starts_with('_') || names.iter().any(is_named)
}
