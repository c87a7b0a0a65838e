//! The state of a conversation between a v2 client and a v1 agent.
//!
//! `turns` has prompts and the state of a session, `updates` what the agent shows (`messages`,
//! `content`, `tools`, `diffs`, `terminals`), `permissions` what it asks, `options` the config
//! options that stand for modes, `sessions` the methods that an agent may lack.

pub(super) mod content;
mod diffs;
mod echo;
mod held;
mod messages;
mod methods;
mod options;
mod parts;
mod permissions;
mod session;
mod sessions;
mod terminals;
mod tools;
mod turns;
mod updates;

use std::time::Instant;

use self::held::Held;
use self::methods::{CLIENT_NOTES, CLIENT_REQUESTS, is_passed};
use self::options::Target;
use self::parts::{member, put, text_of};
use self::session::Session;
use self::sessions::{Restored, Sessions, as_object, close_result, listed, not_found, plain};
use self::turns::{Prompt, keep};
use super::exchange::{Exchange, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, error, result};
use super::traits::{AgentTraits, NewClientTraits};
use crate::dialect::message::Message;
use crate::dialect::pending::MAX_OPEN;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::jsonrpc::{Id, IdBuf, Kind, PendingRequests};

/// The state.
#[derive(Debug)]
pub(super) struct ToV2 {
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
    End(Box<str>),
    Other,
}

/// A change of a config option.
#[derive(Debug)]
struct Change {
    session: Box<str>,
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
    pub(super) fn new(client: NewClientTraits, agent: AgentTraits) -> Self {
        Self {
            client,
            sessions: Sessions::new(agent),
            requests: PendingRequests::new(MAX_OPEN),
            questions: PendingRequests::new(MAX_OPEN),
            held: Held::default(),
        }
    }

    /// A message of the peer, which speaks v2.
    pub(super) fn from_peer<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        match message.kind {
            Kind::Request => self.request(message, out),
            Kind::Notification => self.client_note(message, out),
            Kind::Result | Kind::Error => self.answer(message, out),
        }
    }

    /// A message of the other side, which speaks v1.
    pub(super) fn from_other<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        match message.kind {
            Kind::Request => self.question(message, out),
            Kind::Notification => self.agent_note(message, out),
            Kind::Result | Kind::Error => self.answered(message, out),
        }
    }

    /// When [`ToV2::expire`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sessions
            .iter()
            .filter_map(|session| session.turns.due())
            .min()
    }

    /// Does what is due at `out.now`.
    pub(super) fn expire(&mut self, out: &mut Exchange<'_>) {
        for session in self.sessions.iter_mut() {
            session.turns.expire(out);
        }
    }

    /// A request of the client.
    fn request<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        if !message.id.as_id().is_value() {
            let what = "acp-relay: the id of a request is a number or a string";
            return refuse(&message, INVALID_REQUEST, what, out);
        }
        let id = message.id.clone();
        let session = message.session().unwrap_or_default();
        let needs_session = [
            "session/prompt",
            "session/set_config_option",
            "session/fork",
        ];
        if needs_session.contains(&&*message.method) && self.sessions.is_closing(&session) {
            out.rule("close");
            return out.peer(not_found(&id, &session));
        }
        let request = match &*message.method {
            "session/prompt" => {
                let Some(prompt) = self.prompt(message, out) else {
                    return;
                };
                return self.sessions.get(&session).turns.prompt(prompt, out);
            }
            "session/new" => {
                let params = message.body.to_static();
                out.other(message);
                Some(Request::Make(params))
            }
            "session/fork" => {
                let params = message.body.to_static();
                let is_sent = self.sessions.optional(message, out);
                is_sent.then_some(Request::Make(params))
            }
            "session/resume" => self.sessions.resume(message, out).map(Request::Restore),
            "session/list" => self.sessions.list(message, out).then_some(Request::Other),
            "session/close" => {
                let is_sent = self.sessions.close(message, out);
                is_sent.then(|| Request::End(session.into()))
            }
            "session/delete" => {
                let is_sent = self.sessions.optional(message, out);
                is_sent.then(|| Request::End(session.into()))
            }
            "session/set_config_option" => self.set_option(message, &session, out),
            "logout" => self
                .sessions
                .optional(message, out)
                .then_some(Request::Other),
            "tool_call/cancel" | "terminal/cancel" => {
                let what = "acp-relay: the agent speaks v1 and cannot cancel that";
                return refuse(&message, INVALID_PARAMS, what, out);
            }
            "initialize" => {
                let what = "acp-relay: the connection is initialised";
                return refuse(&message, INVALID_REQUEST, what, out);
            }
            method if is_passed(method, &CLIENT_REQUESTS) => {
                out.other(message);
                Some(Request::Other)
            }
            method => {
                let what = format!("acp-relay: v2 has no method {method}");
                return refuse(&message, METHOD_NOT_FOUND, &what, out);
            }
        };
        if let Some(request) = request {
            self.held.expects(matches!(request, Request::Make(_)));
            let _ = self.requests.insert(id.as_id(), request);
        }
    }

    /// Reads a prompt; one that v1 does not have is refused.
    fn prompt<'a>(&self, mut message: Message<'a>, out: &mut Exchange<'a>) -> Option<Prompt> {
        let content = member(&message.body, "prompt").map(|content| content.to_static());
        let why = match content.clone().as_mut().and_then(Node::items) {
            Some(blocks) if !blocks.is_empty() => {
                let refused = blocks
                    .iter_mut()
                    .find_map(|block| content::to_v1(block).err());
                put(
                    &mut message.body,
                    "prompt",
                    Node::Array(std::mem::take(blocks)),
                );
                refused.map(|kind| format!("the agent speaks v1, which has no content `{kind}`"))
            }
            _ => Some("the prompt is empty".to_owned()),
        };
        if let Some(why) = why {
            refuse(&message, INVALID_PARAMS, &format!("acp-relay: {why}"), out);
            return None;
        }
        let message = keep(message);
        content.map(|content| Prompt { message, content })
    }

    /// `session/set_config_option`. Returns what its answer needs, if the agent is asked.
    fn set_option<'a>(
        &mut self,
        mut message: Message<'a>,
        session: &str,
        out: &mut Exchange<'a>,
    ) -> Option<Request> {
        let option = message.text_at("/configId").unwrap_or_default();
        let value = member(&message.body, "value")
            .unwrap_or(Node::Absent)
            .to_static();
        let target = self.sessions.get(session).options.target(&option);
        let (method, name) = match target {
            Target::Option => ("session/set_config_option", ""),
            Target::Mode => ("session/set_mode", "modeId"),
            Target::Model => ("session/set_model", "modelId"),
        };
        if target != Target::Option {
            if text_of(&message.body, "value").is_none() {
                let what = format!("acp-relay: the value of the option {option} is a string");
                refuse(&message, INVALID_PARAMS, &what, out);
                return None;
            }
            let mut params = vec![("sessionId", Node::string(session)), (name, value.clone())];
            params.extend(member(&message.body, "_meta").map(|meta| ("_meta", meta)));
            message.body = Node::object(params);
            message.method = method.into();
            out.rule("modes");
        }
        out.other(message);
        Some(Request::SetOption(Change {
            session: session.into(),
            option,
            target,
            value,
        }))
    }

    /// A notification of the client.
    fn client_note<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        match &*message.method {
            "session/cancel" => {
                let session = message.session().unwrap_or_default();
                if self.sessions.is_closed(&session) {
                    return;
                }
                if self.sessions.is_open(&session) {
                    self.sessions.get(&session).turns.cancel(out);
                }
                out.other(message);
            }
            "$/cancel_request" => {
                let id = requested(&message);
                let cancel = |session: &mut Session| session.turns.cancel_prompt(&id, out);
                let found = self.sessions.iter_mut().find_map(cancel);
                let is_open = || self.requests.get(id.as_id()).is_some();
                if found.unwrap_or_else(is_open) {
                    out.other(message);
                }
            }
            method if is_passed(method, &CLIENT_NOTES) => out.other(message),
            method => ignore(method, out),
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
            && self.sessions.is_open(&session)
        {
            self.sessions.get(&session).turns.replied(Some(turn), out);
        }
    }

    /// A request of the agent.
    fn question<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let id = message.id.clone();
        let session = self.session_of(&message);
        let method = message.method.clone();
        let is_permission = method == "session/request_permission";
        let is_tool = method.starts_with("fs/") || method.starts_with("terminal/");
        let is_elicitation = method == "elicitation/create";
        if let Some(session) = &session
            && (is_permission || is_tool || is_elicitation)
        {
            if self.sessions.is_closed(session) {
                let cancelled = Node::raw(br#"{"outcome":{"outcome":"cancelled"}}"#);
                out.rule("close");
                return match is_permission {
                    true => out.other(result(&id, cancelled)),
                    false => out.other(not_found(&id, session)),
                };
            }
            self.sessions.get(session).turns.work(out);
        }
        let mut turn = None;
        match &*method {
            "session/request_permission" => match &session {
                Some(session) => permissions::request(self.sessions.get(session), message, out),
                None => return out.other(error(&id, INVALID_PARAMS, "acp-relay: no sessionId")),
            },
            "elicitation/create" if self.lacks_mode(&message) => {
                let what = "acp-relay: the client does not show elicitations of that mode";
                return out.other(error(&id, INVALID_PARAMS, what));
            }
            "elicitation/create" => out.peer(message),
            method if is_passed(method, &["mcp/"]) => out.peer(message),
            method => {
                let what = format!("acp-relay: the client has no method {method}");
                out.note(DialectEvent::Answered, "methods", what.clone());
                return out.other(error(&id, METHOD_NOT_FOUND, &what));
            }
        }
        if let Some(session) = session
            && (is_permission || is_elicitation)
        {
            let number = self.sessions.get(&session).turns.asked(out);
            turn = number.map(|number| (session.into(), number));
        }
        let question = Question {
            is_permission,
            turn,
        };
        let _ = self.questions.insert(id.as_id(), question);
    }

    /// The session that a request of the agent is about.
    fn session_of(&self, message: &Message<'_>) -> Option<String> {
        if let Some(session) = message.session() {
            return Some(session);
        }
        let id = requested(message);
        let mut all = self.sessions.iter();
        let session = all.find(|session| session.turns.is_turn_of(&id))?;
        Some(session.id.to_string())
    }

    /// Whether the client does not show such an elicitation.
    fn lacks_mode(&self, message: &Message<'_>) -> bool {
        match message.text_at("/mode").as_deref() {
            Some("form") | None => !self.client.forms,
            Some("url") => !self.client.urls,
            Some(_) => false,
        }
    }

    /// A notification of the agent.
    fn agent_note<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        match &*message.method {
            "session/update" => {
                let session = message.session().unwrap_or_default();
                if self.sessions.is_closed(&session) {
                    let what = "an update of a session that was closed";
                    return out.note(DialectEvent::Dropped, "close", what);
                }
                if !self.sessions.is_open(&session) && self.held.is_expecting() {
                    let what = "an update before the result that names its session";
                    out.note(DialectEvent::Held, "update", what);
                    return self.held.add(session, message);
                }
                updates::convert(self.sessions.get(&session), message, out);
            }
            "$/cancel_request" => {
                let id = requested(&message);
                if self.questions.get(id.as_id()).is_some() {
                    out.peer(message);
                }
            }
            method if is_passed(method, &["elicitation/complete", "mcp/"]) => out.peer(message),
            method => ignore(method, out),
        }
    }

    /// An answer of the agent.
    fn answered<'a>(&mut self, mut message: Message<'a>, out: &mut Exchange<'a>) {
        if message.method == "session/prompt" {
            let mut all = self.sessions.iter_mut();
            return match all.find(|session| session.turns.is_turn_of(&message.id)) {
                Some(session) => session.turns.answered(message, out),
                None => {
                    let what = "the answer to a prompt of a session that was closed";
                    out.note(DialectEvent::Swallowed, "prompt", what);
                }
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
                    self.agent_note(held, out);
                }
            }
            Request::Restore(restored) => self.sessions.restored(&restored, message, out),
            Request::SetOption(change) => self.option_set(&change, message, out),
            Request::End(session) => self.sessions.gone(&session, message, out),
            Request::Other => match &*message.method {
                "session/list" => listed(message, out),
                "authenticate" | "logout" => plain(message, out),
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
            as_object(&mut message);
            let options = &mut self.sessions.get(&change.session).options;
            options.changed(change.target, &change.option, &change.value, &message.body);
            let whole = options.whole().unwrap_or_else(|| Node::raw(b"[]"));
            put(&mut message.body, "configOptions", whole);
            close_result(&mut message, &["configOptions", "_meta"], out);
        }
        out.peer(message);
    }
}

/// The id that a notification about a request names.
fn requested(message: &Message<'_>) -> IdBuf {
    let json = message.json_at("/requestId").unwrap_or_default();
    Id::of_json(&json).to_owned()
}

/// Answers a request of the client in place of the agent.
fn refuse(message: &Message<'_>, code: i32, what: &str, out: &mut Exchange<'_>) {
    out.note(DialectEvent::Answered, "methods", what);
    out.peer(error(&message.id, code, what));
}

/// Drops a notification that the other version does not have.
fn ignore(method: &str, out: &mut Exchange<'_>) {
    let what = format!("the notification {method}, which the other version does not have");
    out.note(DialectEvent::Dropped, "methods", what);
}
