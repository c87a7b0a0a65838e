//! What the actions for single peers remember of a conversation.
//!
//! It is separate from what all conversations remember (see `memory` and `sessions`), so that a
//! peer without such an action costs nothing. All of it is bounded: the oldest entry is evicted.

use std::collections::{HashSet, VecDeque};

/// Maximum number of remembered sessions, and of tool calls.
const SESSIONS: usize = 256;
const CALLS: usize = 4096;
/// The longest value that is remembered, in bytes.
const LONGEST: usize = 256 << 10;

/// The state of all actions.
#[derive(Debug, Default)]
pub(in crate::dialect) struct ActionState {
    /// The canonical `configOptions` sent last, by session.
    pub(super) options: BySession<Vec<u8>>,
    /// Sessions for which `models` were sent.
    pub(super) with_models: BySession<[u8; 0]>,
    /// Sessions whose modes are in a list that the bridge has made.
    pub(super) with_modes: BySession<[u8; 0]>,
    /// The working directory, by session.
    pub(super) cwd: BySession<String>,
    /// The `authMethods` of `initialize`.
    pub(super) auth_methods: Vec<u8>,
    pub(super) announced: AnnouncedCalls,
    /// The entries of the plan sent last, by session.
    pub(super) plans: BySession<Vec<u8>>,
}

/// A value for each of the newest sessions.
#[derive(Debug)]
pub(super) struct BySession<V> {
    all: VecDeque<(String, V)>,
}

/// The tool calls that have been announced, by session.
#[derive(Debug, Default)]
pub(super) struct AnnouncedCalls {
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
    /// Remembers a value; the oldest session is evicted.
    pub(super) fn insert(&mut self, session: &str, value: V) {
        // A value that is too long to be remembered still removes the previous one.
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

    /// The session, if there is exactly one.
    pub(super) fn only(&self) -> Option<&str> {
        let one = self.all.front().filter(|_| self.all.len() == 1);
        one.map(|(session, _)| session.as_str())
    }
}

impl AnnouncedCalls {
    /// Remembers a tool call. Returns whether it is new.
    pub(super) fn insert(&mut self, session: &str, call: &str) -> bool {
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
