//! The client's requests, and the agent's answers to them.

use super::answers::{close, error_for_v1};
use super::asked::{FromClient, Open};
use super::content::prompt_block;
use super::methods::{ignored, is_for_agents};
use super::options::{self, Value};
use super::session::{commands, display};
use super::state::ToV1;
use crate::dialect::message::Message;
use crate::dialect::methods::method_name;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{
    Exchange, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, error, result,
};
use crate::dialect::versions::json::{array, remove, report, set, text, value};
use crate::jsonrpc::Kind;

impl ToV1 {
    /// A request of the client.
    pub(super) fn client_asks<'a>(&mut self, mut message: Message<'a>, out: &mut Exchange<'a>) {
        let id = message.id.clone();
        let session = message.session().unwrap_or_default();
        let asked = match &*message.method {
            "session/prompt" => return self.client_prompts(message, session, out),
            "session/new" | "session/fork" | "session/load" | "session/resume" => {
                match self.client_opens(&mut message, session, out) {
                    Some(asked) => asked,
                    None => return,
                }
            }
            "session/set_mode" => return self.client_chooses(&message, session, "mode", out),
            "session/set_model" => return self.client_chooses(&message, session, "model", out),
            "session/set_config_option" => {
                let option = text(&message.body, "configId").unwrap_or_default();
                let chosen = text(&message.body, "value");
                let session_of = self.sessions.get_mut(&session).zip(chosen.as_deref());
                let booleans = self.client.boolean_options;
                let meant = session_of
                    .map(|(known, chosen)| known.options.value(&option, chosen, booleans));
                match meant {
                    Some(Value::Boolean(is_on)) => {
                        let is_on: &[u8] = if is_on { b"true" } else { b"false" };
                        message.set_text("/type", "boolean");
                        message.set("/value", Node::raw(is_on));
                    }
                    Some(Value::Unknown) => {
                        let what = format!("acp-relay: the option {option} has no such value");
                        return out.other(error(&id, INVALID_PARAMS, &what));
                    }
                    Some(Value::Same) | None => {}
                }
                FromClient::Option {
                    session,
                    category: None,
                }
            }
            "session/close" | "session/delete" => FromClient::Close(session),
            "session/list" | "authenticate" | "logout" => FromClient::Other,
            "initialize" => {
                let what = "acp-relay: the connection is initialized already";
                return out.other(error(&id, INVALID_REQUEST, what));
            }
            method if is_for_agents(method) => FromClient::Other,
            method => {
                let what = format!("acp-relay: an agent of ACP v1 has no method {method}");
                ignored(method, out);
                return out.other(error(&id, METHOD_NOT_FOUND, &what));
            }
        };
        self.ask_agent(message, asked, out);
    }

    fn ask_agent<'a>(
        &mut self,
        mut message: Message<'a>,
        asked: FromClient,
        out: &mut Exchange<'a>,
    ) {
        close(&mut message, out);
        if let FromClient::Open(Open { replays: true, .. }) = &asked {
            set(
                &mut message.body,
                "replayFrom",
                Node::raw(br#"{"type":"start"}"#),
            );
        }
        let _ = self.asked.insert(message.id.as_id(), asked);
        out.peer(message);
    }

    fn client_prompts<'a>(&mut self, mut message: Message<'a>, id: String, out: &mut Exchange<'a>) {
        let blocks = array(&message.body, "prompt").unwrap_or_default();
        let converted: Option<Vec<_>> = blocks.iter().map(prompt_block).collect();
        let Some(converted) = converted.filter(|blocks| !blocks.is_empty()) else {
            let what = "acp-relay: the prompt is empty, or has content of a type that ACP v1 lacks";
            return out.other(error(&message.id, INVALID_PARAMS, what));
        };
        message.set("/prompt", Node::Array(converted));
        let session = self.sessions.see(&id, &self.client, out);
        session.flush(out);
        session.turns.begin(&message);
        self.ask_agent(message, FromClient::Prompt(id), out);
    }

    /// A request that opens a session; `None` if it was refused.
    fn client_opens(
        &mut self,
        message: &mut Message<'_>,
        session: String,
        out: &mut Exchange<'_>,
    ) -> Option<FromClient> {
        let mut dropped = Vec::new();
        if let Some(mut servers) =
            array(&message.body, "mcpServers").filter(|_| !self.agent.mcp_stdio)
        {
            servers.retain(|server| {
                let is_stdio = text(server, "type").is_none_or(|kind| kind == "stdio");
                if is_stdio {
                    dropped.push(text(server, "name").unwrap_or_default());
                }
                !is_stdio
            });
            message.set("/mcpServers", Node::Array(servers));
        }
        if !dropped.is_empty() {
            if out.policies.refuse_mcp {
                let names = dropped.join(", ");
                let what =
                    format!("acp-relay: the agent cannot start MCP servers by a command: {names}");
                out.other(error(&message.id, INVALID_PARAMS, &what));
                return None;
            }
            let what = format!("MCP servers with a command: {}", dropped.join(", "));
            out.note(DialectEvent::Dropped, "mcp_servers", what);
        }
        let replays = &*message.method == "session/load";
        let is_new = matches!(&*message.method, "session/new" | "session/fork");
        if is_new {
            self.sessions.open();
        } else {
            let known = self.sessions.see(&session, &self.client, out);
            if replays {
                message.method = method_name("session/resume");
                let display = display(&self.client, out.policies.terminals);
                known.begin_replay(display);
                out.rule("load");
            }
        }
        Some(FromClient::Open(Open {
            session: (!is_new).then_some(session),
            replays,
            dropped,
        }))
    }

    /// `session/set_mode` and `session/set_model`: an option of that category is set.
    fn client_chooses(
        &mut self,
        message: &Message<'_>,
        session: String,
        category: &'static str,
        out: &mut Exchange<'_>,
    ) {
        out.rule("options");
        let known = self.sessions.get_mut(&session);
        let option = known.and_then(|known| known.options.id_of(category));
        let chosen = value(
            &message.body,
            if category == "mode" {
                "modeId"
            } else {
                "modelId"
            },
        );
        let (Some(option), Some(chosen)) = (option, chosen) else {
            let what = format!("acp-relay: the session has no option for its {category}");
            return out.other(error(&message.id, METHOD_NOT_FOUND, &what));
        };
        let mut body = Node::object(vec![
            ("sessionId", Node::string(&session)),
            ("configId", option),
            ("value", chosen),
        ]);
        value(&message.body, "_meta")
            .into_iter()
            .for_each(|meta| set(&mut body, "_meta", meta));
        let id = message.id.clone();
        let made = Message::new(Kind::Request, id, "session/set_config_option", body);
        let asked = FromClient::Option {
            session,
            category: Some(category),
        };
        self.ask_agent(made, asked, out);
    }

    /// The agent's answer to a request of the client.
    pub(super) fn agent_answers<'a>(
        &mut self,
        mut message: Message<'a>,
        asked: FromClient,
        out: &mut Exchange<'a>,
    ) {
        match asked {
            FromClient::Prompt(id) => {
                let Some(session) = self.sessions.get_mut(&id) else {
                    return;
                };
                let is_closed = session.is_closed;
                let ended = session.turns.answered(&message, is_closed, out);
                session.finish(&Node::string(&id), ended, out);
                if is_closed {
                    self.sessions.forget(&id);
                }
            }
            FromClient::Open(open) => self.opened(&message, &open, out),
            FromClient::Option { .. } | FromClient::Close(_) if message.kind == Kind::Error => {
                out.other(error_for_v1(&message));
            }
            FromClient::Option { session, category } => {
                self.option_set(message, &session, category, out);
            }
            FromClient::Close(id) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    let ended = session.turns.close(out);
                    let id = Node::string(&id);
                    session.finish(&id, ended, out);
                    session.flush(out);
                    session.is_closed = true;
                }
                self.sessions.forget(&id);
                close(&mut message, out);
                out.other(message);
            }
            FromClient::Other if message.kind == Kind::Error => out.other(error_for_v1(&message)),
            FromClient::Other => {
                close(&mut message, out);
                out.other(message);
            }
        }
    }

    /// The agent's answer to a request that opens a session.
    fn opened<'a>(&mut self, message: &Message<'a>, open: &Open, out: &mut Exchange<'a>) {
        let is_done = message.kind == Kind::Result;
        if open.replays
            && let Some(known) = open
                .session
                .as_deref()
                .and_then(|id| self.sessions.get_mut(id))
        {
            known.end_replay(is_done);
        }
        if !is_done {
            out.other(error_for_v1(message));
            if open.session.is_none() {
                self.sessions.opened(None, out);
            }
            return;
        }
        let mut made = message.to_static();
        close(&mut made, out);
        let id = open
            .session
            .clone()
            .or_else(|| text(&made.body, "sessionId"))
            .unwrap_or_default();
        let session = self.sessions.see(&id, &self.client, out);
        session.is_closed = false;
        let list = options::list(&made.body);
        remove(&mut made.body, "configOptions");
        if let Some(list) = list {
            let list = session.options.take(list, self.client.boolean_options);
            set(&mut made.body, "configOptions", list);
            let modes = session.options.modes();
            modes
                .into_iter()
                .for_each(|modes| set(&mut made.body, "modes", modes));
        }
        if !open.dropped.is_empty() {
            let names = open.dropped.iter().map(|name| Node::string(name));
            report(
                &mut made.body,
                "droppedMcpServers",
                Node::Array(names.collect()),
            );
        }
        out.other(made);
        if let Some(all) = array(&message.body, "availableCommands") {
            let commands = commands(&all);
            session.show(&Node::string(&id), vec![commands], false, out);
        }
        if open.session.is_none() {
            for held in self.sessions.opened(Some(&id), out) {
                self.update(&held, out);
            }
        }
    }

    /// The agent has set an option.
    fn option_set<'a>(
        &mut self,
        mut message: Message<'a>,
        id: &str,
        category: Option<&'static str>,
        out: &mut Exchange<'a>,
    ) {
        out.rule("options");
        let booleans = self.client.boolean_options;
        let session = self.sessions.see(id, &self.client, out);
        let before = session.options.mode();
        let list = options::list(&message.body);
        let list = list.map(|list| session.options.take(list, booleans));
        let mut updates = Vec::new();
        if category.is_some() {
            let mut body = Node::Object(Vec::new());
            value(&message.body, "_meta")
                .into_iter()
                .for_each(|meta| set(&mut body, "_meta", meta));
            out.other(result(&message.id, body));
            updates.extend(list.map(|list| {
                Node::object(vec![
                    ("sessionUpdate", Node::string("config_option_update")),
                    ("configOptions", list),
                ])
            }));
        } else {
            close(&mut message, out);
            let list = list.unwrap_or_else(|| Node::raw(b"[]"));
            set(&mut message.body, "configOptions", list);
            out.other(message);
        }
        if category != Some("mode") {
            updates.extend(session.mode_update(before));
        }
        session.show(&Node::string(id), updates, false, out);
    }
}
