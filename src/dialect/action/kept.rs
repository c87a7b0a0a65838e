//! What the actions for single peers remember of a conversation.
//!
//! It is kept apart from what all conversations remember (see `memory` and `sessions`), so that a
//! peer without such an action pays nothing. Bounded: the oldest makes room. Not here: what is
//! done with it.

use std::collections::{HashSet, VecDeque};

/// Most sessions, and most tool calls, that are remembered.
const SESSIONS: usize = 256;
const CALLS: usize = 4096;
/// The longest value that is remembered, in bytes.
const LONGEST: usize = 256 << 10;

/// All of it.
#[derive(Debug, Default)]
pub(in crate::dialect) struct Kept {
    /// The canonical `configOptions` that were told last, by session.
    pub(super) options: BySession<Vec<u8>>,
    /// Sessions of which `models` were told.
    pub(super) modeled: BySession<[u8; 0]>,
    /// Sessions whose modes stand in a list that this bridge has made.
    pub(super) moded: BySession<[u8; 0]>,
    /// The working directory, by session.
    pub(super) cwd: BySession<String>,
    /// The `authMethods` of `initialize`.
    pub(super) auth_methods: Vec<u8>,
    /// Tool calls that have been told.
    pub(super) told: Told,
    /// The entries of the plan that was told last, by session.
    pub(super) plans: BySession<Vec<u8>>,
}

/// A value for each of the newest sessions.
#[derive(Debug)]
pub(super) struct BySession<V> {
    all: VecDeque<(String, V)>,
}

/// Tool calls, by session.
#[derive(Debug, Default)]
pub(super) struct Told {
    all: HashSet<(String, String)>,
    order: VecDeque<(String, String)>,
}

impl<V> Default for BySession<V> {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
        }
    }
}

impl<V: AsRef<[u8]>> BySession<V> {
    /// Remembers a value; the oldest session makes room.
    pub(super) fn keep(&mut self, session: &str, value: V) {
        // What is too long to be remembered replaces what was there all the same.
        self.all.retain(|(known, _)| known != session);
        if session.len() + value.as_ref().len() > LONGEST {
            return;
        }
        if self.all.len() >= SESSIONS {
            self.all.pop_front();
        }
        self.all.push_back((session.to_owned(), value));
    }

    /// The value of a session.
    pub(super) fn get(&self, session: &str) -> Option<&V> {
        let found = self.all.iter().find(|(known, _)| known == session);
        found.map(|(_, value)| value)
    }

    /// The session there is, when there is one only.
    pub(super) fn only(&self) -> Option<&str> {
        let one = self.all.front().filter(|_| self.all.len() == 1);
        one.map(|(session, _)| session.as_str())
    }
}

impl Told {
    /// Remembers a tool call. Returns whether it is new.
    pub(super) fn tell(&mut self, session: &str, call: &str) -> bool {
        let key = (session.to_owned(), call.to_owned());
        if session.len() + call.len() > LONGEST || !self.all.insert(key.clone()) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
        true
    }
}
