//! The sessions of a conversation, and the updates of those that the client has not heard of.

use std::collections::VecDeque;
use std::time::Instant;

use hashlink::LinkedHashMap;

use super::session::{Session, display};
use crate::dialect::message::Message;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::traits::ClientTraits;
use crate::jsonrpc::Id;

/// How many sessions are remembered.
const SESSIONS: usize = 256;
/// How many updates wait for the result that introduces their session.
const HELD: usize = 256;
/// About how many bytes they may have.
const HELD_BYTES: usize = 4 << 20;

/// All sessions, by id; the newest is the one that was seen last.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: LinkedHashMap<String, Session>,
    /// How many requests for new sessions are open.
    opening: usize,
    held: VecDeque<(String, Message<'static>)>,
}

impl Sessions {
    /// A session that is known.
    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    /// The session with that id, which is known from now on.
    pub(super) fn see(
        &mut self,
        id: &str,
        client: &ClientTraits,
        out: &Exchange<'_>,
    ) -> &mut Session {
        if !self.all.contains_key(id) && self.all.len() >= SESSIONS {
            let idle = self
                .all
                .iter()
                .find(|(_, session)| !session.turns.is_open());
            if let Some(idle) = idle.map(|(id, _)| id.clone()) {
                self.all.remove(&idle);
            }
        }
        let fresh = || Session::new(display(client, out.policies.terminals));
        self.all.to_back(id);
        self.all.entry(id.to_owned()).or_insert_with(fresh)
    }

    /// Forgets a closed session; one with open prompts remains until they are answered.
    pub(super) fn forget(&mut self, id: &str) {
        if self
            .all
            .get(id)
            .is_some_and(|session| !session.turns.is_open())
        {
            self.all.remove(id);
        }
    }

    /// Marks the prompt with that id as cancelled; its session, if the agent has accepted it.
    pub(super) fn prompted(&mut self, id: Id<'_>) -> Option<String> {
        for (name, session) in &mut self.all {
            if session.turns.cancel_one(id) {
                session.turns.cancel();
                return Some(name.clone());
            }
        }
        None
    }

    /// A new session was asked for.
    pub(super) fn open(&mut self) {
        self.opening += 1;
    }

    /// That was answered: the updates that have waited for it, if it was granted.
    pub(super) fn opened(
        &mut self,
        id: Option<&str>,
        out: &mut Exchange<'_>,
    ) -> Vec<Message<'static>> {
        self.opening = self.opening.saturating_sub(1);
        let (own, other): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(held, _)| Some(&**held) == id);
        if self.opening > 0 {
            self.held = other;
        } else if !other.is_empty() {
            out.note(
                DialectEvent::Dropped,
                "sessions",
                "updates of a session that was not opened",
            );
        }
        own.into_iter().map(|(_, message)| message).collect()
    }

    /// Holds an update of a session that a result is yet to introduce.
    pub(super) fn holds(
        &mut self,
        id: &str,
        message: &Message<'_>,
        out: &mut Exchange<'_>,
    ) -> bool {
        if self.opening == 0 || self.all.contains_key(id) {
            return false;
        }
        out.rule("sessions");
        self.held.push_back((id.to_owned(), message.to_static()));
        let size = |held: &VecDeque<(String, Message<'static>)>| {
            held.iter()
                .map(|(_, message)| message.body.json().len())
                .sum::<usize>()
        };
        while self.held.len() > HELD || self.held.len() > 1 && size(&self.held) > HELD_BYTES {
            self.held.pop_front();
            let what = "an early update of a new session: there are too many";
            out.note(DialectEvent::Dropped, "sessions", what);
        }
        true
    }

    /// When an idle state ends a turn.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.all
            .values()
            .filter_map(|session| session.turns.deadline())
            .min()
    }

    /// Ends the turns for which that is due.
    pub(super) fn expire(&mut self, out: &mut Exchange<'_>) {
        for (id, session) in &mut self.all {
            let ended = session.turns.expire(out);
            session.finish(&Node::string(id), ended, out);
        }
    }
}
