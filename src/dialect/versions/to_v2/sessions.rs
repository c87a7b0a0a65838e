//! The sessions of a conversation, and what an agent of v1 may lack of their methods.

use hashlink::LinkedHashMap;

use super::session::Session;
use crate::message::Message;
use crate::object::object;
use crate::tree::Node;
use crate::versions::content::drop_odd_date;
use crate::versions::initialize::AgentMethods;
use crate::versions::methods::close;
use crate::versions::out::{INVALID_PARAMS, NOT_FOUND, Out, error, result};
use jsonrpc::{IdBuf, Kind};

/// How many sessions are remembered.
const MAX_SESSIONS: usize = 1024;

/// The sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) agent: AgentMethods,
    pub(super) all: LinkedHashMap<Box<str>, Session>,
}

/// What an open request to restore a session leaves behind.
#[derive(Debug)]
pub(super) struct Restored {
    session: String,
    /// It was not known before.
    is_new: bool,
    /// The client has asked for its history.
    is_replayed: bool,
}

impl Sessions {
    pub(super) fn new(agent: AgentMethods) -> Self {
        Self {
            agent,
            all: LinkedHashMap::new(),
        }
    }

    /// A session that is known.
    pub(super) fn known(&mut self, id: &str) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    /// A session; one that is not known is added.
    pub(super) fn get(&mut self, id: &str) -> &mut Session {
        if self.all.len() >= MAX_SESSIONS && !self.all.contains_key(id) {
            let mut idle = self.all.values().filter(|session| session.turns.is_idle());
            if let Some(oldest) = idle.next().map(|session| session.id.clone()) {
                self.all.remove(&oldest);
            }
        }
        let fresh = || Session::new(id);
        self.all.entry(id.into()).or_insert_with(fresh)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.all.values_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.all.values()
    }

    /// Whether the bridge has closed a session, or is about to.
    pub(super) fn is_closing(&self, id: &str) -> bool {
        let session = self.all.get(id);
        session.is_some_and(|session| session.turns.is_closing())
    }

    /// `session/resume`. Returns what its answer needs; none if it was answered.
    pub(super) fn resume(
        &mut self,
        message: &mut Message<'_>,
        out: &mut Out<'_>,
    ) -> Option<Restored> {
        let id = message.session().unwrap_or_default();
        let replay = message.body.value("replayFrom");
        message.body.remove("replayFrom");
        let from = replay.map(|replay| replay.word("type"));
        let is_open = self.all.contains_key(&*id) && !self.is_closing(&id);
        let refusal = match from.as_deref() {
            Some("start") if !self.agent.has("session/load") => {
                "the agent cannot replay a session".to_owned()
            }
            Some("start") | None => String::new(),
            Some(from) => format!("replayFrom `{from}` is not supported"),
        };
        if !refusal.is_empty() {
            out.refuse("resume", &message.id, INVALID_PARAMS, &refusal);
            return None;
        }
        let is_replayed = from.is_some();
        if is_replayed || !self.agent.has("session/resume") {
            message.method = "session/load".into();
        }
        if !is_replayed && !self.agent.has("session/resume") {
            out.emulated("resume", "the agent has no session/resume");
            if !self.agent.has("session/load") {
                match self.all.get(&*id).filter(|_| is_open) {
                    Some(session) => {
                        session.turns.snapshot(out);
                        let made = object! { "configOptions": session.options.whole() };
                        out.peer(result(&message.id, made));
                    }
                    None => out.peer(not_found(&message.id, &id)),
                }
                return None;
            }
        }
        if !is_open {
            self.all.remove(&*id);
        }
        let session = self.get(&id);
        session.place(&message.body);
        session.quiet = !is_replayed && session.turns.is_idle();
        if is_replayed {
            session.turns.messages.split();
            session.tools.forget_calls();
        }
        Some(Restored {
            session: id,
            is_new: !is_open,
            is_replayed,
        })
    }

    /// The answer to a request that restores a session.
    pub(super) fn restored<'a>(
        &mut self,
        restored: &Restored,
        mut answer: Message<'a>,
        out: &mut Out<'a>,
    ) {
        let session = self.get(&restored.session);
        session.quiet = false;
        if session.turns.is_idle() {
            session.turns.messages.split();
        }
        if answer.kind == Kind::Result {
            session.options.read_result(&mut answer.body);
            if restored.is_replayed {
                out.rule("resume");
                let end = object! { "sessionUpdate": "replay_complete" };
                out.peer(Message::update(Node::string(&restored.session), end));
            }
            session.turns.snapshot(out);
        } else if restored.is_new {
            self.all.remove(&*restored.session);
        }
        close(&mut answer, out);
        out.pass(answer);
    }

    /// The answer to a request that makes a session. Returns its id.
    pub(super) fn made<'a>(
        &mut self,
        params: &Node<'_>,
        mut answer: Message<'a>,
        out: &mut Out<'a>,
    ) -> Option<String> {
        let id = answer.session().filter(|_| answer.kind == Kind::Result);
        if let Some(id) = &id {
            self.all.remove(&**id);
            let session = self.get(id);
            session.place(params);
            session.options.read_result(&mut answer.body);
        }
        close(&mut answer, out);
        out.pass(answer);
        id
    }

    /// `session/list`, if the agent lacks it. Returns whether it was answered.
    pub(super) fn lists(&self, message: &Message<'_>, out: &mut Out<'_>) -> bool {
        if self.agent.has("session/list") {
            return false;
        }
        let folder = message.body.text("cwd");
        let all = self.all.values();
        let entries = all.filter_map(|session| session.entry(folder.as_deref()));
        let entries: Vec<_> = entries.collect();
        out.emulated("list", "the agent has no session/list");
        out.peer(result(&message.id, object! { "sessions": entries }));
        true
    }

    /// `session/close`. Returns whether it is answered in place of the agent.
    pub(super) fn closes(&mut self, message: &Message<'_>, out: &mut Out<'_>) -> bool {
        let session = message.session().and_then(|id| self.all.get_mut(&*id));
        let has = self.agent.has("session/close");
        match session {
            Some(session) if has => session.turns.refuse_queue(out),
            Some(session) => session.turns.close_for(message.id.clone(), out),
            None if has => {}
            None => out.peer(result(&message.id, object! {})),
        }
        if !has {
            out.emulated("close", "the agent has no session/close");
        }
        !has
    }

    /// The agent has answered a request to close or delete a session.
    pub(super) fn gone<'a>(&mut self, id: &str, mut answer: Message<'a>, out: &mut Out<'a>) {
        if answer.kind == Kind::Result
            && let Some(mut session) = self.all.remove(id)
        {
            session.turns.end(out);
        }
        close(&mut answer, out);
        out.pass(answer);
    }
}

/// The agent's answer to `session/list`.
pub(super) fn listed(answer: &mut Message<'_>) {
    if answer.kind == Kind::Result {
        let mut sessions = answer.body.list("sessions");
        for session in &mut sessions {
            drop_odd_date(session, "updatedAt");
            if session.is_null("additionalDirectories") {
                session.remove("additionalDirectories");
            }
        }
        answer.body.set("sessions", sessions);
    }
}

/// The error for a session that is not open.
pub(super) fn not_found(request: &IdBuf, session: &str) -> Message<'static> {
    let mut error = error(request, NOT_FOUND, "the session is not open");
    let data = object! { "sessionId": session };
    error.body.set("data", data);
    error
}
