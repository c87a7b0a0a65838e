//! The messages of both sides.

use std::time::Instant;

use super::permissions::{self, Permission};
use super::session::Session;
use super::sessions::Sessions;
use crate::memory;
use crate::message::Message;
use crate::object::object;
use crate::pending::MAX_OPEN;
use crate::tree::Node;
use crate::versions::initialize::{ClientTraits, result_to_v1};
use crate::versions::methods::{close, no_decision, passes_to_clients};
use crate::versions::out::{CANCELLED, Hop, INVALID_PARAMS, Out, State, error_code, result};
use jsonrpc::{IdBuf, Kind, PendingRequests, Side};

/// The state.
#[derive(Debug)]
pub(in crate::versions) struct ToV1 {
    pub(super) client: ClientTraits,
    /// The tools that the client offers, and the agent cannot use.
    tools: Vec<&'static str>,
    /// Whether the agent starts MCP servers by a command.
    pub(super) starts_servers: bool,
    pub(super) sessions: Sessions,
    /// The client's requests that the agent has not answered.
    pub(super) asked: PendingRequests<FromClient>,
    /// The agent's requests that the client has not answered; those for permissions with more.
    asking: PendingRequests<Option<Box<Permission>>>,
    /// How many tool calls of the bridge stood for the subjects of permissions.
    stand_ins: u64,
}

/// What is kept of a request of the client.
#[derive(Debug)]
pub(super) enum FromClient {
    /// A prompt for that session.
    Prompt(String),
    /// A session is opened.
    Open(Open),
    /// An option of a session is set; for `session/set_mode` and `session/set_model`, of that
    /// category.
    Option {
        session: String,
        category: Option<&'static str>,
    },
    /// That session is closed or deleted.
    Close(String),
    /// Anything else.
    Other,
}

/// A session that is opened.
#[derive(Debug)]
pub(super) struct Open {
    /// Its id; a new one has none yet.
    pub(super) session: Option<String>,
    pub(super) replays: bool,
    /// The names of MCP servers that the agent cannot start.
    pub(super) dropped: Vec<String>,
}

impl State for ToV1 {
    fn peer(&self) -> Side {
        Side::Agent
    }

    fn initialized<'a>(&mut self, result: Message<'a>, out: &mut Out<'a>) {
        result_to_v1(result, &self.tools, out);
    }

    fn asked<'a>(&mut self, request: Message<'a>, out: &mut Out<'a>) {
        match out.from {
            Hop::Peer => self.agent_asks(request, out),
            Hop::Other => self.client_asks(request, out),
        }
    }

    fn answered<'a>(&mut self, answer: Message<'a>, out: &mut Out<'a>) {
        match out.from {
            Hop::Peer => match self.asked.remove(answer.id.as_id()) {
                Some((_, asked)) => self.agent_answers(answer, asked, out),
                None => out.pass(answer),
            },
            Hop::Other => match self.asking.remove(answer.id.as_id()) {
                Some((_, asked)) => self.client_answers(answer, asked, out),
                None => out.pass(answer),
            },
        }
    }

    fn updated<'a>(&mut self, update: Message<'a>, out: &mut Out<'a>) {
        self.update(&update, out);
    }

    fn cancelled<'a>(&mut self, mut note: Message<'a>, out: &mut Out<'a>) {
        let session = note.session();
        let session = session.and_then(|id| self.sessions.get_mut(&id));
        if session.is_none_or(|session| !session.turns.cancel() && !session.is_child) {
            let what = "session/cancel without an open turn: the agent would cancel the next one";
            return out.dropped("turns", what);
        }
        close(&mut note, out);
        out.pass(note);
    }

    /// In v1 the prompt is the turn, in v2 it ends at once.
    fn withdrawn<'a>(&mut self, id: &IdBuf, note: Message<'a>, out: &mut Out<'a>) {
        let id = id.as_id();
        let is_open = match out.from {
            Hop::Peer => self.asking.get(id).is_some(),
            Hop::Other => match self.sessions.prompted(id) {
                Some(session) => {
                    out.rule("turns");
                    return out.pass(Message::cancel(&session));
                }
                None => self.asked.get(id).is_some(),
            },
        };
        if is_open {
            out.pass(note);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.sessions.deadline()
    }

    fn expire(&mut self, out: &mut Out<'_>) {
        self.sessions.expire(out);
    }

    fn weight(&self) -> usize {
        self.sessions.early.updates.bytes + memory::sessions(&self.sessions.all)
    }

    fn forget(&mut self, excess: &mut usize) -> usize {
        memory::forget(&mut self.sessions.all, excess)
    }
}

impl ToV1 {
    pub(in crate::versions) fn new(
        client: ClientTraits,
        tools: Vec<&'static str>,
        starts_servers: bool,
    ) -> Self {
        Self {
            client,
            tools,
            starts_servers,
            sessions: Sessions::default(),
            asked: PendingRequests::new(MAX_OPEN),
            asking: PendingRequests::new(MAX_OPEN),
            stand_ins: 0,
        }
    }

    /// The session with that id, which is known from now on.
    pub(super) fn session(&mut self, id: &str) -> &mut Session {
        self.sessions.see(id, self.client)
    }

    /// An update of the agent, unless it waits for the result that introduces its session.
    pub(super) fn update(&mut self, message: &Message<'_>, out: &mut Out<'_>) {
        let (Some(id), Some(mut update)) = (message.session(), message.body.value("update")) else {
            return out.dropped("updates", "an update names no session");
        };
        if !self.sessions.holds(&id, message, out) {
            update.add_meta(message.body.value("_meta"));
            if update.says("sessionUpdate", "subagent_update")
                && let Some(child) = update.id("sessionId")
            {
                self.session(&child).is_child = true;
            }
            self.session(&id).update(&update, out);
        }
    }

    /// A request of the agent.
    fn agent_asks<'a>(&mut self, message: Message<'a>, out: &mut Out<'a>) {
        match &*message.method {
            "session/request_permission" => return self.agent_asks_permission(&message, out),
            "elicitation/create" if !self.client.elicitation.shows(&message) => {
                let why = "the client does not show elicitations of that mode";
                return out.refuse("elicitation", &message.id, INVALID_PARAMS, why);
            }
            "elicitation/create" => {}
            method if passes_to_clients(method) => {}
            _ => return out.unknown(&message),
        }
        let _ = self.asking.insert(message.id.as_id(), None);
        out.pass(message);
    }

    fn agent_asks_permission(&mut self, request: &Message<'_>, out: &mut Out<'_>) {
        let id = request.session().unwrap_or_default();
        let session = self.sessions.see(&id, self.client);
        let mut stand_in = String::new();
        while stand_in.is_empty() || session.tables.tools.knows(&stand_in) {
            self.stand_ins += 1;
            stand_in = format!("acpb-perm-{}", self.stand_ins);
        }
        let (before, asked) = permissions::ask(request, session, &stand_in, out);
        let is_used = |update: &Node<'_>| update.says("toolCallId", &stand_in);
        self.stand_ins -= u64::from(!before.iter().any(is_used));
        session.flush(out);
        session.show(before, false, out);
        let Some((params, permission)) = asked else {
            return out.peer(result(&request.id, no_decision()));
        };
        let permission = Some(Box::new(permission));
        let _ = self.asking.insert(request.id.as_id(), permission);
        let id = request.id.clone();
        out.other(Message::new(Kind::Request, id, &request.method, params));
    }

    /// The client's answer to a request of the agent, which may be one for a permission.
    fn client_answers<'a>(
        &mut self,
        mut answer: Message<'a>,
        asked: Option<Box<Permission>>,
        out: &mut Out<'a>,
    ) {
        if let Some(asked) = asked {
            let session = self.sessions.get_mut(&asked.session);
            let (answer, after) = permissions::answered(answer, &asked, session.as_deref());
            out.pass(answer);
            if let Some(session) = session {
                session.show(after, false, out);
            }
            return;
        }
        let is_elicitation = answer.method == "elicitation/create";
        if is_elicitation && error_code(&answer) == Some(CANCELLED) {
            return out.pass(result(&answer.id, object! { "action": "cancel" }));
        }
        close(&mut answer, out);
        out.pass(answer);
    }
}
