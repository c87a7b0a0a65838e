//! The messages of both sides.

use std::time::Instant;

use super::answers::{close, has_code};
use super::asked::{FromAgent, FromClient};
use super::methods::{ignored, is_for_agents, is_for_both};
use super::permissions;
use super::sessions::Sessions;
use crate::dialect::message::Message;
use crate::dialect::pending::MAX_OPEN;
use crate::dialect::text::JsonType;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{
    CANCELLED, Exchange, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, error, result,
};
use crate::dialect::versions::json::{add_meta, member, text, value};
use crate::dialect::versions::traits::{ClientTraits, NewAgentTraits};
use crate::jsonrpc::{Id, IdBuf, Kind, PendingRequests};

/// The state.
#[derive(Debug)]
pub(in crate::dialect::versions) struct ToV1 {
    pub(super) client: ClientTraits,
    pub(super) agent: NewAgentTraits,
    pub(super) sessions: Sessions,
    /// The client's requests that the agent has not answered.
    pub(super) asked: PendingRequests<FromClient>,
    /// The agent's requests that the client has not answered.
    asking: PendingRequests<FromAgent>,
    /// How many tool calls of the bridge stood for the subjects of permissions.
    stand_ins: u64,
}

impl ToV1 {
    pub(in crate::dialect::versions) fn new(client: ClientTraits, agent: NewAgentTraits) -> Self {
        Self {
            client,
            agent,
            sessions: Sessions::default(),
            asked: PendingRequests::new(MAX_OPEN),
            asking: PendingRequests::new(MAX_OPEN),
            stand_ins: 0,
        }
    }

    /// A message of the peer, which speaks v2.
    pub(in crate::dialect::versions) fn peer_sends<'a>(
        &mut self,
        message: Message<'a>,
        out: &mut Exchange<'a>,
    ) {
        match message.kind {
            Kind::Request => self.agent_asks(message, out),
            Kind::Notification => match &*message.method {
                "session/update" => self.update(&message, out),
                "$/cancel_request" => self.agent_withdraws(message, out),
                method if is_for_both(method) || method == "elicitation/complete" => {
                    out.other(message)
                }
                method => ignored(method, out),
            },
            Kind::Result | Kind::Error => match self.asked.remove(message.id.as_id()) {
                Some((_, asked)) => self.agent_answers(message, asked, out),
                None => out.other(message),
            },
        }
    }

    /// A message of the other side, which speaks v1.
    pub(in crate::dialect::versions) fn other_sends<'a>(
        &mut self,
        mut message: Message<'a>,
        out: &mut Exchange<'a>,
    ) {
        match message.kind {
            Kind::Request => self.client_asks(message, out),
            Kind::Notification => match &*message.method {
                "session/cancel" => {
                    let id = message.session().unwrap_or_default();
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.turns.cancel();
                    }
                    close(&mut message, out);
                    out.peer(message);
                }
                "$/cancel_request" => self.client_withdraws(message, out),
                method if is_for_agents(method) => out.peer(message),
                method => ignored(method, out),
            },
            Kind::Result | Kind::Error => match self.asking.remove(message.id.as_id()) {
                Some((_, asked)) => self.client_answers(message, asked, out),
                None => out.peer(message),
            },
        }
    }

    /// The tools that the client offers, and the agent cannot use.
    pub(in crate::dialect::versions) fn client_tools(&self) -> &[&'static str] {
        &self.client.tools
    }

    /// When [`ToV1::expire`] is due.
    pub(in crate::dialect::versions) fn deadline(&self) -> Option<Instant> {
        self.sessions.deadline()
    }

    /// Does what is due at `out.now`.
    pub(in crate::dialect::versions) fn expire(&mut self, out: &mut Exchange<'_>) {
        self.sessions.expire(out);
    }

    /// An update of the agent, unless it waits for the result that introduces its session.
    pub(super) fn update(&mut self, message: &Message<'_>, out: &mut Exchange<'_>) {
        let (Some(id), Some(mut update)) = (message.session(), value(&message.body, "update"))
        else {
            out.note(
                DialectEvent::Dropped,
                "updates",
                "an update names no session",
            );
            return;
        };
        if self.sessions.holds(&id, message, out) {
            return;
        }
        if let Some(meta) = value(&message.body, "_meta") {
            add_meta(&mut update, meta);
        }
        let session = self.sessions.see(&id, &self.client, out);
        session.update(&Node::string(&id), &update, &self.client, out);
    }

    /// A request of the agent.
    fn agent_asks<'a>(&mut self, mut message: Message<'a>, out: &mut Exchange<'a>) {
        let id = message.id.clone();
        if !id.as_id().is_value() {
            let what = "acp-relay: a request needs an id that is a number or a string";
            return out.peer(error(&id, INVALID_REQUEST, what));
        }
        let asked = match &*message.method {
            "session/request_permission" => return self.agent_asks_permission(&message, out),
            "elicitation/create" => {
                let mode = text(&message.body, "mode").unwrap_or_default();
                let lacks = match &*mode {
                    "form" => !self.client.elicitation_form,
                    "url" => !self.client.elicitation_url,
                    _ => false,
                };
                if lacks {
                    let what = format!("acp-relay: the client has no elicitation by {mode}");
                    return out.peer(error(&id, INVALID_PARAMS, &what));
                }
                FromAgent::Elicitation
            }
            method if is_for_both(method) => FromAgent::Other,
            method => {
                let what = format!("acp-relay: a client of ACP v2 has no method {method}");
                ignored(method, out);
                return out.peer(error(&id, METHOD_NOT_FOUND, &what));
            }
        };
        close(&mut message, out);
        let _ = self.asking.insert(id.as_id(), asked);
        out.other(message);
    }

    fn agent_asks_permission(&mut self, message: &Message<'_>, out: &mut Exchange<'_>) {
        let id = message.session().unwrap_or_default();
        let session_id = Node::string(&id);
        let session = self.sessions.see(&id, &self.client, out);
        let mut stand_in = String::new();
        while stand_in.is_empty() || session.tables.tools.knows(&stand_in) {
            self.stand_ins += 1;
            stand_in = format!("acpb-perm-{}", self.stand_ins);
        }
        let question = permissions::ask(message, session, &stand_in, out);
        let is_used = question
            .before
            .iter()
            .any(|update| text(update, "toolCallId").as_deref() == Some(&stand_in));
        self.stand_ins -= u64::from(!is_used);
        session.flush(out);
        session.show(&session_id, question.before, false, out);
        let Some((params, asked)) = question.asked else {
            let body = Node::object(vec![("outcome", permissions::cancelled())]);
            return out.peer(result(&message.id, body));
        };
        let asked = FromAgent::Permission(Box::new(asked));
        let _ = self.asking.insert(message.id.as_id(), asked);
        let id = message.id.clone();
        out.other(Message::new(Kind::Request, id, &message.method, params));
    }

    /// The client's answer to a request of the agent.
    fn client_answers<'a>(
        &mut self,
        mut message: Message<'a>,
        asked: FromAgent,
        out: &mut Exchange<'a>,
    ) {
        match asked {
            FromAgent::Other => {}
            FromAgent::Elicitation => {
                if has_code(&message, CANCELLED) {
                    let body = Node::object(vec![("action", Node::string("cancel"))]);
                    message = result(&message.id, body);
                }
                close(&mut message, out);
            }
            FromAgent::Permission(asked) => {
                let session = self.sessions.get_mut(&asked.session);
                let (answer, after) = permissions::answered(message, &asked, session.as_deref());
                out.peer(answer);
                if let (Some(session), Some(after)) = (session, after) {
                    session.show(&Node::string(&asked.session), vec![after], false, out);
                }
                return;
            }
        }
        out.peer(message);
    }

    /// The agent withdraws a request.
    fn agent_withdraws<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        if request_id(&message).is_some_and(|id| self.asking.get(id.as_id()).is_some()) {
            out.other(message);
        }
    }

    /// The client withdraws a request: in v1 the prompt is the turn, in v2 it ends at once.
    fn client_withdraws<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) {
        let Some(id) = request_id(&message) else {
            return;
        };
        if let Some(session) = self.sessions.prompted(id.as_id()) {
            let body = Node::object(vec![("sessionId", Node::string(&session))]);
            let id = IdBuf::default();
            out.rule("turns");
            return out.peer(Message::new(Kind::Notification, id, "session/cancel", body));
        }
        if self.asked.get(id.as_id()).is_some() {
            out.peer(message);
        }
    }
}

/// The request that a `$/cancel_request` is about.
fn request_id(message: &Message<'_>) -> Option<IdBuf> {
    let id = member(&message.body, "requestId")?;
    let is_id = matches!(id.kind(), JsonType::Number | JsonType::String);
    is_id.then(|| Id::of_json(&id.json()).to_owned())
}
