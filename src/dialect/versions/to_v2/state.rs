//! The state: requests, notifications and answers of both sides.

use std::time::Instant;

use super::options::CHOICES;
use super::session::Session;
use super::sessions::{Restored, Sessions, listed, not_found};
use super::turns::Prompt;
use super::updates;
use crate::memory;
use crate::message::Message;
use crate::methods::method_name;
use crate::object::{Json, object};
use crate::pending::MAX_OPEN;
use crate::text::JsonType;
use crate::translation::DialectEvent;
use crate::tree::Node;
use crate::versions::initialize::{AgentMethods, Elicitation, result_to_v2};
use crate::versions::methods::{
    close, no_decision, passes_to_agents, passes_to_clients, requested,
};
use crate::versions::out::{Hop, INVALID_PARAMS, Out, State, result};
use crate::versions::waiting::Early;
use jsonrpc::{IdBuf, Kind, PendingRequests, Side};

/// Requests of the client for a session that is open.
const NEED_SESSION: [&str; 3] = [
    "session/prompt",
    "session/set_config_option",
    "session/fork",
];

/// The state.
#[derive(Debug)]
pub(in crate::versions) struct ToV2 {
    elicitation: Elicitation,
    sessions: Sessions,
    /// The requests of the client that the agent has not answered.
    asked: PendingRequests<FromClient>,
    /// The requests of the agent that the client has not answered, each with the session and the
    /// turn that wait for the answer.
    asking: PendingRequests<Option<(Box<str>, u64)>>,
    /// Updates of sessions that no result has named yet.
    early: Early,
}

/// What is kept of a request of the client.
#[derive(Debug)]
enum FromClient {
    /// It makes a session; the folders in its params.
    Make(Json),
    Restore(Restored),
    /// It sets an option, which may stand for something else (see [`CHOICES`]).
    SetOption {
        session: String,
        option: String,
        target: Option<usize>,
        value: Json,
    },
    /// It ends a session.
    End(String),
    Other,
}

impl State for ToV2 {
    fn peer(&self) -> Side {
        Side::Client
    }

    fn initialized<'a>(&mut self, result: Message<'a>, out: &mut Out<'a>) {
        result_to_v2(result, out);
    }

    fn asked<'a>(&mut self, request: Message<'a>, out: &mut Out<'a>) {
        match out.from {
            Hop::Peer => self.client_asks(request, out),
            Hop::Other => self.agent_asks(request, out),
        }
    }

    fn answered<'a>(&mut self, answer: Message<'a>, out: &mut Out<'a>) {
        match out.from {
            Hop::Peer => self.client_answers(answer, out),
            Hop::Other => self.agent_answers(answer, out),
        }
    }

    fn updated<'a>(&mut self, update: Message<'a>, out: &mut Out<'a>) {
        let id = update.session().unwrap_or_default();
        match self.sessions.known(&id) {
            Some(session) if session.turns.is_closed() => {
                out.dropped("close", "an update of a session that was closed");
            }
            Some(session) => updates::convert(session, update, out),
            None if self.early.is_expecting() => self.early.hold(id, &update, out),
            None => updates::convert(self.sessions.get(&id), update, out),
        }
    }

    fn cancelled<'a>(&mut self, note: Message<'a>, out: &mut Out<'a>) {
        let session = note.session().and_then(|id| self.sessions.known(&id));
        if session.is_none_or(|session| session.turns.cancel(out)) {
            out.pass(note);
        }
    }

    fn withdrawn<'a>(&mut self, id: &IdBuf, note: Message<'a>, out: &mut Out<'a>) {
        let is_passed = match out.from {
            Hop::Peer => {
                let cancel = |session: &mut Session| session.turns.cancel_prompt(id, out);
                let found = self.sessions.iter_mut().find_map(cancel);
                found.unwrap_or_else(|| self.asked.get(id.as_id()).is_some())
            }
            Hop::Other => self.asking.get(id.as_id()).is_some(),
        };
        if is_passed {
            out.pass(note);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let all = self.sessions.iter();
        all.filter_map(|session| session.turns.due()).min()
    }

    fn expire(&mut self, out: &mut Out<'_>) {
        for session in self.sessions.iter_mut() {
            session.turns.expire(out);
        }
    }

    fn weight(&self) -> usize {
        self.early.updates.bytes + memory::sessions(&self.sessions.all)
    }

    fn forget(&mut self, excess: &mut usize) -> usize {
        memory::forget(&mut self.sessions.all, excess)
    }
}

impl ToV2 {
    pub(in crate::versions) fn new(elicitation: Elicitation, agent: AgentMethods) -> Self {
        Self {
            elicitation,
            sessions: Sessions::new(agent),
            asked: PendingRequests::new(MAX_OPEN),
            asking: PendingRequests::new(MAX_OPEN),
            early: Early::default(),
        }
    }

    /// A request of the client.
    fn client_asks<'a>(&mut self, mut message: Message<'a>, out: &mut Out<'a>) {
        let id = message.id.clone();
        let session = message.session().unwrap_or_default();
        let all = &mut self.sessions;
        if NEED_SESSION.contains(&&*message.method) && all.is_closing(&session) {
            out.rule("close");
            return out.peer(not_found(&id, &session));
        }
        let asked = match &*message.method {
            "session/prompt" => match Prompt::read(message) {
                Ok(prompt) => return all.get(&session).turns.prompt(prompt, out),
                Err(why) => return out.refuse("prompt", &id, INVALID_PARAMS, &why),
            },
            method @ ("session/fork" | "session/delete" | "logout") if !all.agent.has(method) => {
                return out.unknown(&message);
            }
            "session/new" | "session/fork" => {
                self.early.expect();
                FromClient::Make(object! {
                    "cwd": message.body.value("cwd"),
                    "additionalDirectories": message.body.value("additionalDirectories"),
                })
            }
            "session/resume" => match all.resume(&mut message, out) {
                Some(restored) => FromClient::Restore(restored),
                None => return,
            },
            "session/list" if all.lists(&message, out) => return,
            "session/close" if all.closes(&message, out) => return,
            "session/close" | "session/delete" => FromClient::End(session),
            "session/set_config_option" => match self.client_sets(&mut message, session, out) {
                Some(asked) => asked,
                None => return,
            },
            "tool_call/cancel" | "terminal/cancel" => {
                let why = "the agent speaks v1 and cannot cancel that";
                return out.refuse("methods", &id, INVALID_PARAMS, why);
            }
            "session/list" | "authenticate" | "logout" => FromClient::Other,
            method if passes_to_agents(method) => FromClient::Other,
            _ => return out.unknown(&message),
        };
        let _ = self.asked.insert(id.as_id(), asked);
        out.pass(message);
    }

    /// `session/set_config_option`. Returns what its answer needs; none if it was refused.
    fn client_sets(
        &mut self,
        message: &mut Message<'_>,
        session: String,
        out: &mut Out<'_>,
    ) -> Option<FromClient> {
        let option = message.body.word("configId");
        let value = message.body.part("value");
        let target = self.sessions.get(&session).options.target(&option);
        if let Some((method, name)) = target.map(|target| CHOICES[target].set) {
            if value.kind() != Some(JsonType::String) {
                let why = format!("the value of the option {option} is a string");
                out.refuse("modes", &message.id, INVALID_PARAMS, &why);
                return None;
            }
            message.body.keep_only("sessionId");
            message.body.set(name, value.clone());
            message.method = method_name(method);
            out.rule("modes");
        }
        Some(FromClient::SetOption {
            session,
            option,
            target,
            value,
        })
    }

    /// An answer of the client.
    fn client_answers<'a>(&mut self, mut answer: Message<'a>, out: &mut Out<'a>) {
        let asked = self.asking.remove(answer.id.as_id());
        let is_permission = answer.method == "session/request_permission";
        if is_permission && answer.kind == Kind::Result {
            let outcome = answer.body.part("outcome");
            let is_selected =
                outcome.says("outcome", "selected") && !outcome.word("optionId").is_empty();
            if !is_selected && !outcome.says("outcome", "cancelled") {
                let what = "an outcome that v1 does not have is no approval";
                out.note(DialectEvent::Permission, "permission", what);
                answer.body = no_decision();
            }
        }
        out.pass(answer);
        if let Some((_, Some((session, turn)))) = asked
            && let Some(session) = self.sessions.known(&session)
        {
            session.turns.replied(turn, out);
        }
    }

    /// A request of the agent.
    fn agent_asks<'a>(&mut self, message: Message<'a>, out: &mut Out<'a>) {
        let (id, method) = (message.id.clone(), message.method.clone());
        let is_permission = method == "session/request_permission";
        let is_question = is_permission || method == "elicitation/create";
        let is_work = is_question || method.starts_with("fs/") || method.starts_with("terminal/");
        let session = self.session_of(&message).filter(|_| is_work);
        let mut session = session.map(|session| self.sessions.get(&session));
        if let Some(session) = &mut session {
            session.turns.work(out);
        }
        match (&*method, &mut session) {
            ("session/request_permission", Some(session)) => {
                let options = message.body.list("options");
                if session.turns.is_closed() || options.is_empty() {
                    let what = "there is nothing to choose";
                    out.note(DialectEvent::Answered, "permission", what);
                    return out.other(result(&id, no_decision()));
                }
                updates::permission(session, message, out);
            }
            ("elicitation/create", _) if self.elicitation.shows(&message) => out.pass(message),
            ("elicitation/create", _) => {
                let why = "the client does not show elicitations of that mode";
                return out.refuse("elicitation", &id, INVALID_PARAMS, why);
            }
            (method, _) if passes_to_clients(method) => out.pass(message),
            _ => return out.unknown(&message),
        }
        let turn = session.filter(|_| is_question).and_then(|session| {
            let turn = session.turns.asked(out)?;
            Some((session.id.clone(), turn))
        });
        let _ = self.asking.insert(id.as_id(), turn);
    }

    /// The session that a request of the agent is about.
    fn session_of(&self, message: &Message<'_>) -> Option<String> {
        message.session().or_else(|| {
            let id = requested(message)?;
            let mut all = self.sessions.iter();
            let session = all.find(|session| session.turns.is_turn_of(&id))?;
            Some(session.id.to_string())
        })
    }

    /// An answer of the agent.
    fn agent_answers<'a>(&mut self, mut answer: Message<'a>, out: &mut Out<'a>) {
        if answer.method == "session/prompt" {
            let mut all = self.sessions.iter_mut();
            return match all.find(|session| session.turns.is_turn_of(&answer.id)) {
                Some(session) => session.turns.answered(answer, out),
                None => out.note(DialectEvent::Swallowed, "prompt", "its session was closed"),
            };
        }
        let Some((id, asked)) = self.asked.remove(answer.id.as_id()) else {
            return out.pass(answer);
        };
        answer.id = id;
        match asked {
            FromClient::Make(params) => {
                let made = self.sessions.made(&params, answer, out);
                for held in self.early.release(made.as_deref()).into_iter().flatten() {
                    self.updated(held, out);
                }
            }
            FromClient::Restore(restored) => self.sessions.restored(&restored, answer, out),
            FromClient::End(session) => self.sessions.gone(&session, answer, out),
            FromClient::SetOption {
                session,
                option,
                target,
                value,
            } => {
                if answer.kind == Kind::Result {
                    let options = &mut self.sessions.get(&session).options;
                    options.changed(target, &option, &value, &answer.body);
                    close(&mut answer, out);
                    // The result has all options.
                    let whole = options.whole().unwrap_or(Node::Array(Vec::new()));
                    answer.body.set("configOptions", whole);
                }
                out.pass(answer);
            }
            FromClient::Other => {
                if answer.method == "session/list" {
                    listed(&mut answer);
                }
                close(&mut answer, out);
                out.pass(answer);
            }
        }
    }
}
