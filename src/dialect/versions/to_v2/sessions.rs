//! The sessions of a conversation, and what an agent of v1 may lack of their methods.

use hashlink::LinkedHashMap;

use super::parts::{drop_odd_date, keep_only, member, put, remove, text_of};
use super::session::Session;
use crate::dialect::message::Message;
use crate::dialect::text::JsonType;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{
    Exchange, INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND, error, result,
};
use crate::dialect::versions::traits::AgentTraits;
use crate::jsonrpc::{IdBuf, Kind};

/// How many sessions are remembered.
const MAX_SESSIONS: usize = 1024;

/// The sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    agent: AgentTraits,
    all: LinkedHashMap<Box<str>, Session>,
}

/// What an open request to restore a session leaves behind.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) session: Box<str>,
    /// It was not known before.
    is_new: bool,
}

impl Sessions {
    pub(super) fn new(agent: AgentTraits) -> Self {
        Self {
            agent,
            all: LinkedHashMap::new(),
        }
    }

    /// Whether a session is open.
    pub(super) fn is_open(&self, id: &str) -> bool {
        let found = self.all.get(id);
        found.is_some_and(|session| !session.turns.is_closed())
    }

    /// Whether the bridge has closed a session, or is about to.
    pub(super) fn is_closing(&self, id: &str) -> bool {
        let found = self.all.get(id);
        found.is_some_and(|session| session.turns.is_closing())
    }

    /// Whether the bridge has closed a session.
    pub(super) fn is_closed(&self, id: &str) -> bool {
        let found = self.all.get(id);
        found.is_some_and(|session| session.turns.is_closed())
    }

    /// A session; one that is not known is added.
    pub(super) fn get(&mut self, id: &str) -> &mut Session {
        if !self.all.contains_key(id) && self.all.len() >= MAX_SESSIONS {
            let idle = |(_, session): &(&Box<str>, &Session)| session.turns.is_idle();
            let oldest = self.all.iter().find(idle).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.all.remove(&oldest);
            }
        }
        let new = || Session::new(id);
        self.all.entry(id.into()).or_insert_with(new)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.all.values_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.all.values()
    }

    /// Adds a session, which no longer is what it was before.
    pub(super) fn open(&mut self, id: &str) -> &mut Session {
        self.all.remove(id);
        self.get(id)
    }

    /// `session/resume`. Returns what its answer needs, if the agent is asked.
    pub(super) fn resume<'a>(
        &mut self,
        mut message: Message<'a>,
        out: &mut Exchange<'a>,
    ) -> Option<Restored> {
        let id = message.session().unwrap_or_default();
        let replay = member(&message.body, "replayFrom");
        remove(&mut message.body, "replayFrom");
        if let Some(replay) = &replay {
            let from = text_of(replay, "type").unwrap_or_default();
            let why = match &*from {
                "start" if self.agent.load => None,
                "start" => Some("the agent cannot replay a session".to_owned()),
                _ => Some(format!("replayFrom `{from}` is not supported")),
            };
            if let Some(why) = why {
                out.rule("resume");
                out.peer(error(
                    &message.id,
                    INVALID_PARAMS,
                    &format!("acp-relay: {why}"),
                ));
                return None;
            }
        }
        let is_open = self.is_open(&id) && !self.is_closing(&id);
        let method = match &replay {
            Some(_) => "session/load",
            None if self.agent.resume => "session/resume",
            None if self.agent.load => "session/load",
            None => {
                match is_open {
                    true => self.answer_resume(&message.id, &id, out),
                    false => out.peer(not_found(&message.id, &id)),
                }
                return None;
            }
        };
        let session = match is_open {
            true => self.get(&id),
            false => self.open(&id),
        };
        session.place(&message.body);
        session.turns.messages.split();
        session.quiet = replay.is_none() && session.turns.is_idle();
        if replay.is_some() {
            session.tools.restart();
        }
        if method == "session/load" && replay.is_none() {
            let what = "session/load stands in for session/resume";
            out.note(DialectEvent::Emulated, "resume", what);
        }
        message.method = method.into();
        out.other(message);
        Some(Restored {
            session: id.into(),
            is_new: !is_open,
        })
    }

    fn answer_resume(&mut self, request: &IdBuf, id: &str, out: &mut Exchange<'_>) {
        let session = self.get(id);
        session.turns.snapshot(out);
        let mut made = Vec::new();
        made.extend(session.options.whole().map(|all| ("configOptions", all)));
        let what = "session/resume of a session that is open";
        out.note(DialectEvent::Emulated, "resume", what);
        out.peer(result(request, Node::object(made)));
    }

    /// The answer to a request that restores a session.
    pub(super) fn restored<'a>(
        &mut self,
        restored: &Restored,
        mut message: Message<'a>,
        out: &mut Exchange<'a>,
    ) {
        let session = self.get(&restored.session);
        session.quiet = false;
        session.turns.messages.split();
        if message.kind == Kind::Error {
            if restored.is_new {
                self.all.remove(&restored.session);
            }
            return out.peer(message);
        }
        as_object(&mut message);
        session.options.read_result(&mut message.body);
        session.turns.snapshot(out);
        close_result(&mut message, &["configOptions", "_meta"], out);
        out.peer(message);
    }

    /// The answer to a request that makes a session. Returns its id.
    pub(super) fn made<'a>(
        &mut self,
        params: &Node<'_>,
        mut message: Message<'a>,
        out: &mut Exchange<'a>,
    ) -> Option<String> {
        let id = message.session().filter(|_| message.kind == Kind::Result);
        if let Some(id) = &id {
            let session = self.open(id);
            session.place(params);
            session.options.read_result(&mut message.body);
            close_result(&mut message, &["sessionId", "configOptions", "_meta"], out);
        }
        out.peer(message);
        id
    }

    /// `session/list`. Returns whether the agent is asked.
    pub(super) fn list<'a>(&self, message: Message<'a>, out: &mut Exchange<'a>) -> bool {
        if self.agent.list {
            out.other(message);
            return true;
        }
        let folder = text_of(&message.body, "cwd");
        let all = self.all.values();
        let all = all.filter_map(|session| session.entry(folder.as_deref()));
        let made = vec![("sessions", Node::Array(all.collect()))];
        let what = "the agent has no session/list";
        out.note(DialectEvent::Emulated, "list", what);
        out.peer(result(&message.id, Node::object(made)));
        false
    }

    /// `session/close`. Returns whether the agent is asked.
    pub(super) fn close<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) -> bool {
        let id = message.session().unwrap_or_default();
        if self.agent.close {
            if let Some(session) = self.all.get_mut(&*id) {
                session.turns.refuse_queue(out);
            }
            out.other(message);
            return true;
        }
        let what = "the agent has no session/close";
        out.note(DialectEvent::Emulated, "close", what);
        match self.all.get_mut(&*id) {
            Some(session) => session.turns.close_for(message.id, out),
            None => out.peer(result(&message.id, Node::raw(b"{}"))),
        }
        false
    }

    /// `session/delete` and `session/fork`, `logout`. Returns whether the agent is asked.
    pub(super) fn optional<'a>(&self, message: Message<'a>, out: &mut Exchange<'a>) -> bool {
        let has = match &*message.method {
            "session/delete" => self.agent.delete,
            "session/fork" => self.agent.fork,
            _ => self.agent.logout,
        };
        if has {
            out.other(message);
        } else {
            let what = format!("acp-relay: the agent has no {}", message.method);
            out.rule("methods");
            out.peer(error(&message.id, METHOD_NOT_FOUND, &what));
        }
        has
    }

    /// The agent has answered a request to close or delete a session.
    pub(super) fn gone<'a>(&mut self, id: &str, message: Message<'a>, out: &mut Exchange<'a>) {
        if message.kind == Kind::Result
            && let Some(mut session) = self.all.remove(id)
        {
            session.turns.end(out);
        }
        plain(message, out);
    }
}

/// The answer to `session/list` of the agent.
pub(super) fn listed<'a>(mut message: Message<'a>, out: &mut Exchange<'a>) {
    if message.kind == Kind::Result {
        as_object(&mut message);
        let mut sessions = member(&message.body, "sessions").unwrap_or_else(|| Node::raw(b"[]"));
        let known = [
            "sessionId",
            "cwd",
            "additionalDirectories",
            "title",
            "updatedAt",
            "archived",
            "_meta",
        ];
        for session in sessions.items().into_iter().flatten() {
            keep_only(session, &known);
            drop_odd_date(session, "updatedAt");
            if member(session, "additionalDirectories").is_none() {
                remove(session, "additionalDirectories");
            }
        }
        put(&mut message.body, "sessions", sessions);
        close_result(&mut message, &["sessions", "nextCursor", "_meta"], out);
    }
    out.peer(message);
}

/// An answer whose result has no members.
pub(super) fn plain<'a>(mut message: Message<'a>, out: &mut Exchange<'a>) {
    if message.kind == Kind::Result {
        as_object(&mut message);
        close_result(&mut message, &["_meta"], out);
    }
    out.peer(message);
}

/// Removes the members that v2 does not define.
pub(super) fn close_result(message: &mut Message<'_>, names: &[&str], out: &mut Exchange<'_>) {
    if keep_only(&mut message.body, names) {
        let what = "members of a result that v2 does not have";
        out.note(DialectEvent::Dropped, "result", what);
    }
}

/// Some agents answer null.
pub(super) fn as_object(message: &mut Message<'_>) {
    if message.body.kind() != Some(JsonType::Object) {
        message.body = Node::raw(b"{}");
    }
}

/// The error for a session that is not known.
pub(super) fn not_found(request: &IdBuf, session: &str) -> Message<'static> {
    let what = "acp-relay: the session is not open";
    let mut error = error(request, NOT_FOUND, what);
    let data = Node::object(vec![("sessionId", Node::string(session))]);
    put(&mut error.body, "data", data);
    error
}
