//! The sessions of a conversation, and the updates of those that the client has not heard of.

use std::time::Instant;

use hashlink::LinkedHashMap;

use super::session::Session;
use crate::message::Message;
use crate::versions::initialize::ClientTraits;
use crate::versions::out::Out;
use crate::versions::waiting::Early;
use jsonrpc::Id;

/// How many sessions are remembered.
const SESSIONS: usize = 256;

/// All sessions, by id; the newest is the one that was seen last.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) all: LinkedHashMap<Box<str>, Session>,
    /// The updates of new sessions.
    pub(super) early: Early,
}

impl Sessions {
    /// A session that is known.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    /// The session with that id, which is known from now on.
    pub(super) fn see(&mut self, id: &str, client: ClientTraits) -> &mut Session {
        if !self.all.contains_key(id) && self.all.len() >= SESSIONS {
            let mut all = self.all.iter();
            let idle = all.find(|(_, session)| !session.turns.is_open());
            if let Some(idle) = idle.map(|(id, _)| id.clone()) {
                self.all.remove(&idle);
            }
        }
        self.all.to_back(id);
        let fresh = || Session::new(id, client);
        self.all.entry(id.into()).or_insert_with(fresh)
    }

    /// Forgets a closed session; one with open prompts remains until they are answered.
    pub(super) fn forget(&mut self, id: &str) {
        let is_over = |session: &Session| !session.turns.is_open();
        if self.all.get(id).is_some_and(is_over) {
            self.all.remove(id);
        }
    }

    /// Marks the prompt with that id as cancelled; its session, if the agent has accepted it.
    pub(super) fn prompted(&mut self, id: Id<'_>) -> Option<String> {
        let found = |session: &mut Session| session.turns.cancel_one(id);
        let mut all = self.all.iter_mut();
        let (name, session) =
            all.find_map(|(name, session)| found(session).then_some((name, session)))?;
        session.turns.cancel();
        Some(name.to_string())
    }

    /// Holds an update of a session that a result is yet to introduce. Returns whether it is one.
    pub(super) fn holds(&mut self, id: &str, message: &Message<'_>, out: &mut Out<'_>) -> bool {
        let holds = self.early.is_expecting() && !self.all.contains_key(id);
        if holds {
            self.early.hold(id.to_owned(), message, out);
        }
        holds
    }

    /// A new session was answered for: the updates that have waited for it, if it was granted.
    pub(super) fn opened(&mut self, id: Option<&str>, out: &mut Out<'_>) -> Vec<Message<'static>> {
        let [own, others] = self.early.release(id);
        if !others.is_empty() {
            out.dropped("sessions", "updates of a session that was not opened");
        }
        own
    }

    /// When an idle state ends a turn.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let all = self.all.values();
        all.filter_map(|session| session.turns.deadline()).min()
    }

    /// Ends the turns for which that is due.
    pub(super) fn expire(&mut self, out: &mut Out<'_>) {
        for session in self.all.values_mut() {
            let ended = session.turns.expire(out);
            session.finish(ended, out);
        }
    }
}
