//! The sessions of a conversation, and what an agent of v1 may lack of their methods.

use hashlink::LinkedHashMap;

use super::parts::{drop_odd_date, keep_only};
use super::session::Session;
use crate::dialect::message::Message;
use crate::dialect::text::JsonType;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{
    Exchange, INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND, error, result,
};
use crate::dialect::versions::json::{LISTED, array, remove, set, text as text_of, value};
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
    session: String,
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

    /// A session that is known.
    pub(super) fn known(&mut self, id: &str) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    /// A session; one that is not known is added.
    pub(super) fn get(&mut self, id: &str) -> &mut Session {
        if !self.all.contains_key(id) {
            let mut idle = self.all.values().filter(|session| session.turns.is_idle());
            if self.all.len() >= MAX_SESSIONS
                && let Some(oldest) = idle.next().map(|session| session.id.clone())
            {
                self.all.remove(&oldest);
            }
            self.all.insert(id.into(), Session::new(id));
        }
        self.all.get_mut(id).expect("it is there")
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.all.values_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.all.values()
    }

    /// Whether the bridge has closed a session, or is about to.
    pub(super) fn is_closing(&self, id: &str) -> bool {
        self.all
            .get(id)
            .is_some_and(|session| session.turns.is_closing())
    }

    /// `session/resume`. Returns what its answer needs, if the agent is asked.
    pub(super) fn resume<'a>(
        &mut self,
        mut message: Message<'a>,
        out: &mut Exchange<'a>,
    ) -> Option<Restored> {
        let id = message.session().unwrap_or_default();
        let replay = value(&message.body, "replayFrom");
        remove(&mut message.body, "replayFrom");
        let from = replay.map(|replay| text_of(&replay, "type").unwrap_or_default());
        let is_open = self.all.contains_key(&*id) && !self.is_closing(&id);
        let refusal = match from.as_deref() {
            Some("start") if self.agent.load => None,
            Some("start") => Some("acp-relay: the agent cannot replay a session".to_owned()),
            Some(from) => Some(format!("acp-relay: replayFrom `{from}` is not supported")),
            None => None,
        };
        if let Some(why) = refusal {
            out.rule("resume");
            out.peer(error(&message.id, INVALID_PARAMS, &why));
            return None;
        }
        let is_replayed = from.is_some();
        if is_replayed || !self.agent.resume {
            "session/load".clone_into(message.method.to_mut());
        }
        if !is_replayed && !self.agent.resume {
            out.note(
                DialectEvent::Emulated,
                "resume",
                "the agent has no session/resume",
            );
            if !self.agent.load {
                match self.all.get(&*id).filter(|_| is_open) {
                    Some(session) => {
                        session.turns.snapshot(out);
                        let options = session.options.whole();
                        let made = options.map(|all| ("configOptions", all));
                        let made = Node::object(made.into_iter().collect());
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
            session.tools.titles.clear();
        }
        out.other(message);
        Some(Restored {
            session: id,
            is_new: !is_open,
        })
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
        if session.turns.is_idle() {
            session.turns.messages.split();
        }
        if message.kind == Kind::Result {
            object_of(&mut message);
            session.options.read_result(&mut message.body);
            session.turns.snapshot(out);
        } else if restored.is_new {
            self.all.remove(&*restored.session);
        }
        close(message, &["configOptions", "_meta"], out);
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
            self.all.remove(&**id);
            let session = self.get(id);
            session.place(params);
            session.options.read_result(&mut message.body);
        }
        close(message, &["sessionId", "configOptions", "_meta"], out);
        id
    }

    /// `session/list`. Returns whether the agent is asked.
    pub(super) fn list<'a>(&self, message: Message<'a>, out: &mut Exchange<'a>) -> bool {
        if self.agent.list {
            out.other(message);
            return true;
        }
        let folder = text_of(&message.body, "cwd");
        let entries = self
            .all
            .values()
            .filter_map(|session| session.entry(folder.as_deref()));
        let made = Node::object(vec![("sessions", Node::Array(entries.collect()))]);
        out.note(
            DialectEvent::Emulated,
            "list",
            "the agent has no session/list",
        );
        out.peer(result(&message.id, made));
        false
    }

    /// `session/close`. Returns whether the agent is asked.
    pub(super) fn close<'a>(&mut self, message: Message<'a>, out: &mut Exchange<'a>) -> bool {
        let session = message.session().and_then(|id| self.all.get_mut(&*id));
        if self.agent.close {
            if let Some(session) = session {
                session.turns.refuse_queue(out);
            }
            out.other(message);
            return true;
        }
        out.note(
            DialectEvent::Emulated,
            "close",
            "the agent has no session/close",
        );
        match session {
            Some(session) => session.turns.close_for(message.id, out),
            None => out.peer(result(&message.id, Node::raw(b"{}"))),
        }
        false
    }

    /// `session/delete`, `session/fork` and `logout`. Returns whether the agent is asked.
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
        close(message, &["_meta"], out);
    }
}

/// The agent's answer to `session/list`.
pub(super) fn listed<'a>(mut message: Message<'a>, out: &mut Exchange<'a>) {
    if message.kind == Kind::Result {
        object_of(&mut message);
        let mut sessions = array(&message.body, "sessions").unwrap_or_default();
        for session in &mut sessions {
            keep_only(session, &LISTED);
            drop_odd_date(session, "updatedAt");
            if value(session, "additionalDirectories").is_none() {
                remove(session, "additionalDirectories");
            }
        }
        set(&mut message.body, "sessions", Node::Array(sessions));
    }
    close(message, &["sessions", "nextCursor", "_meta"], out);
}

/// Sends an answer without the members that v2 does not define for its result.
pub(super) fn close<'a>(mut message: Message<'a>, names: &[&str], out: &mut Exchange<'a>) {
    if message.kind == Kind::Result {
        object_of(&mut message);
        if keep_only(&mut message.body, names) {
            out.note(
                DialectEvent::Dropped,
                "result",
                "members that v2 does not have",
            );
        }
    }
    out.peer(message);
}

/// Some agents answer null.
pub(super) fn object_of(message: &mut Message<'_>) {
    if message.body.kind() != Some(JsonType::Object) {
        message.body = Node::raw(b"{}");
    }
}

/// The error for a session that is not open.
pub(super) fn not_found(request: &IdBuf, session: &str) -> Message<'static> {
    let mut error = error(request, NOT_FOUND, "acp-relay: the session is not open");
    let data = Node::object(vec![("sessionId", Node::string(session))]);
    set(&mut error.body, "data", data);
    error
}
