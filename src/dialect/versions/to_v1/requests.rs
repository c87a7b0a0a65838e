//! The client's requests, and the agent's answers to them.

use super::options::{self, Value};
use super::session::commands_update;
use super::state::{FromClient, Open, ToV1};
use crate::message::Message;
use crate::methods::method_name;
use crate::object::object;
use crate::tree::Node;
use crate::versions::content::prompt_to_v2;
use crate::versions::methods::{close, error_for_v1, passes_to_agents};
use crate::versions::out::{INVALID_PARAMS, METHOD_NOT_FOUND, Out, Refusal, result};
use jsonrpc::Kind;

/// What is kept of a request, unless it is refused.
type Kept = Result<FromClient, Refusal>;

impl ToV1 {
    /// A request of the client.
    pub(super) fn client_asks<'a>(&mut self, mut message: Message<'a>, out: &mut Out<'a>) {
        let session = message.session().unwrap_or_default();
        let asked = match &*message.method {
            "session/prompt" => self.client_prompts(&mut message, session, out),
            "session/new" | "session/fork" | "session/load" | "session/resume" => {
                self.client_opens(&mut message, session, out)
            }
            "session/set_mode" | "session/set_model" => {
                out.rule("options");
                self.client_chooses(&mut message, session)
            }
            "session/set_config_option" => self.client_sets(&mut message, session),
            "session/close" | "session/delete" => Ok(FromClient::Close(session)),
            "session/list" | "authenticate" | "logout" => Ok(FromClient::Other),
            method if passes_to_agents(method) => Ok(FromClient::Other),
            _ => return out.unknown(&message),
        };
        match asked {
            Ok(asked) => {
                close(&mut message, out);
                if let FromClient::Open(Open { replays: true, .. }) = &asked {
                    let from = object! { "type": "start" };
                    message.body.set("replayFrom", from);
                }
                let _ = self.asked.insert(message.id.as_id(), asked);
                out.pass(message);
            }
            Err((rule, code, why)) => out.refuse(rule, &message.id, code, &why),
        }
    }

    fn client_prompts(&mut self, message: &mut Message<'_>, id: String, out: &mut Out<'_>) -> Kept {
        let blocks = message.body.list("prompt");
        let converted: Option<Vec<_>> = blocks.iter().map(prompt_to_v2).collect();
        let Some(converted) = converted.filter(|blocks| !blocks.is_empty()) else {
            let why = "the prompt is empty, or has content of a type that ACP v1 lacks";
            return Err(("prompt", INVALID_PARAMS, why.to_owned()));
        };
        let session = self.session(&id);
        session.flush(out);
        session.turns.begin(&message.id, &converted);
        message.body.set("prompt", converted);
        Ok(FromClient::Prompt(id))
    }

    /// A request that opens a session.
    fn client_opens(&mut self, message: &mut Message<'_>, id: String, out: &mut Out<'_>) -> Kept {
        let is_lost = |server: &Node<'_>| {
            !self.starts_servers && server.text("type").is_none_or(|kind| kind == "stdio")
        };
        let servers = message.body.list("mcpServers").into_iter();
        let (dropped, kept): (Vec<_>, Vec<_>) = servers.partition(is_lost);
        let name = |server: &Node<'_>| server.word("name");
        let dropped: Vec<_> = dropped.iter().map(name).collect();
        if !dropped.is_empty() {
            let names = dropped.join(", ");
            if out.policies.refuse_mcp {
                let why = format!("the agent cannot start MCP servers by a command: {names}");
                return Err(("mcp_servers", INVALID_PARAMS, why));
            }
            let what = format!("MCP servers with a command: {names}");
            out.dropped("mcp_servers", what);
            message.body.set("mcpServers", kept);
        }
        let replays = message.method == "session/load";
        let is_new = matches!(&*message.method, "session/new" | "session/fork");
        if is_new {
            self.sessions.early.expect();
        } else if replays {
            message.method = method_name("session/resume");
            self.session(&id).begin_replay();
            out.rule("load");
        } else {
            self.session(&id);
        }
        Ok(FromClient::Open(Open {
            session: (!is_new).then_some(id),
            replays,
            dropped,
        }))
    }

    /// `session/set_mode` and `session/set_model`: an option of that category is set.
    fn client_chooses(&mut self, message: &mut Message<'_>, session: String) -> Kept {
        let is_mode = message.method == "session/set_mode";
        let category = if is_mode { "mode" } else { "model" };
        let known = self.sessions.get_mut(&session);
        let option = known.and_then(|known| known.options.id_of(category));
        let chosen = message.body.value(&format!("{category}Id"));
        let (Some(option), Some(chosen)) = (option, chosen) else {
            let why = format!("the session has no option for its {category}");
            return Err(("options", METHOD_NOT_FOUND, why));
        };
        message.method = method_name("session/set_config_option");
        message.body.keep_only("sessionId");
        message.body.set("configId", option);
        message.body.set("value", chosen);
        Ok(FromClient::Option {
            session,
            category: Some(category),
        })
    }

    /// `session/set_config_option`: what was shown as a choice may be a boolean.
    fn client_sets(&mut self, message: &mut Message<'_>, session: String) -> Kept {
        let option = message.body.word("configId");
        let chosen = message.body.text("value");
        let known = self.sessions.get_mut(&session).zip(chosen);
        match known.map(|(known, chosen)| known.options.value(&option, &chosen)) {
            Some(Value::Boolean(is_on)) => {
                message.body.set("type", "boolean");
                message.body.set("value", is_on);
            }
            Some(Value::Unknown) => {
                let why = format!("the option {option} has no such value");
                return Err(("options", INVALID_PARAMS, why));
            }
            Some(Value::Same) | None => {}
        }
        Ok(FromClient::Option {
            session,
            category: None,
        })
    }

    /// The agent's answer to a request of the client.
    pub(super) fn agent_answers<'a>(
        &mut self,
        mut answer: Message<'a>,
        asked: FromClient,
        out: &mut Out<'a>,
    ) {
        let is_error = answer.kind == Kind::Error;
        match asked {
            FromClient::Prompt(id) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    let is_closed = session.is_closed;
                    let ended = session.turns.answered(&answer, is_closed, out);
                    session.finish(ended, out);
                    if is_closed {
                        self.sessions.forget(&id);
                    }
                }
            }
            FromClient::Open(open) => self.opened(answer, &open, out),
            _ if is_error => out.pass(error_for_v1(&answer)),
            FromClient::Option { session, category } => {
                self.option_set(answer, &session, category, out);
            }
            FromClient::Close(id) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    let ended = session.turns.close(out);
                    session.finish(ended, out);
                    session.flush(out);
                    session.is_closed = true;
                }
                self.sessions.forget(&id);
                close(&mut answer, out);
                out.pass(answer);
            }
            FromClient::Other => {
                close(&mut answer, out);
                out.pass(answer);
            }
        }
    }

    /// The agent's answer to a request that opens a session.
    fn opened<'a>(&mut self, mut answer: Message<'a>, open: &Open, out: &mut Out<'a>) {
        let is_done = answer.kind == Kind::Result;
        let known = open.session.as_deref().filter(|_| open.replays);
        if let Some(known) = known.and_then(|id| self.sessions.get_mut(id)) {
            known.end_replay(is_done);
        }
        if !is_done {
            out.pass(error_for_v1(&answer));
            if open.session.is_none() {
                self.sessions.opened(None, out);
            }
            return;
        }
        let commands = answer.body.array("availableCommands");
        let commands = commands.map(|all| commands_update(&all));
        close(&mut answer, out);
        let named = || answer.session().unwrap_or_default();
        let id = open.session.clone().unwrap_or_else(named);
        let session = self.session(&id);
        session.is_closed = false;
        let list = options::list(&answer.body);
        answer.body.remove("configOptions");
        if let Some(list) = list {
            answer.body.set("configOptions", session.options.take(list));
            answer.body.set("modes", session.options.modes());
        }
        if !open.dropped.is_empty() {
            let mut body = answer.body.to_static();
            body.report("droppedMcpServers", &*open.dropped);
            answer.body = body;
        }
        out.pass(answer);
        session.show(commands.into_iter().collect(), false, out);
        if open.session.is_none() {
            for held in self.sessions.opened(Some(&id), out) {
                self.update(&held, out);
            }
        }
    }

    /// The agent has set an option.
    fn option_set<'a>(
        &mut self,
        mut answer: Message<'a>,
        id: &str,
        category: Option<&'static str>,
        out: &mut Out<'a>,
    ) {
        out.rule("options");
        let session = self.session(id);
        let before = session.options.mode();
        let list = options::list(&answer.body);
        let list = list.map(|list| session.options.take(list));
        let mut updates = Vec::new();
        if category.is_some() {
            // The result of v1 has no list.
            let body = object! { "_meta": answer.body.value("_meta") };
            out.pass(result(&answer.id, body));
            updates.extend(list.map(|list| {
                object! { "sessionUpdate": "config_option_update", "configOptions": list }
            }));
        } else {
            close(&mut answer, out);
            answer.body.set("configOptions", list.unwrap_or_default());
            out.pass(answer);
        }
        if category != Some("mode") {
            updates.extend(session.mode_update(before));
        }
        session.show(updates, false, out);
    }
}
