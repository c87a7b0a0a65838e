//! Updates of sessions that no result has named yet.

use crate::dialect::message::Message;

/// How much is held, in messages and in bytes.
const MAX_HELD: (usize, usize) = (4096, 8 << 20);

/// The updates that wait, with their sessions.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// How many results that name a session are open.
    expected: usize,
    updates: Vec<(String, Message<'static>)>,
    bytes: usize,
}

impl Held {
    /// Counts a request that makes a session.
    pub(super) fn expects(&mut self, makes_session: bool) {
        self.expected += usize::from(makes_session);
    }

    /// Whether a session that is not known may be named by a result.
    pub(super) const fn is_expecting(&self) -> bool {
        self.expected > 0
    }

    /// Holds an update; the ones that are too much are dropped.
    pub(super) fn add(&mut self, session: String, message: &Message<'_>) {
        let bytes = self.bytes.saturating_add(message.size);
        if self.updates.len() < MAX_HELD.0 && bytes <= MAX_HELD.1 {
            self.bytes = bytes;
            self.updates.push((session, message.to_static()));
        }
    }

    /// A result has named a session, or none: what waited for it, and all when none is expected
    /// any more.
    pub(super) fn release(&mut self, session: Option<&str>) -> Vec<Message<'static>> {
        self.expected = self.expected.saturating_sub(1);
        let is_last = self.expected == 0;
        let is_released = |named: &str| is_last || session == Some(named);
        let all = std::mem::take(&mut self.updates);
        let (released, rest): (Vec<_>, _) =
            all.into_iter().partition(|(named, _)| is_released(named));
        self.updates = rest;
        self.bytes = self.updates.iter().map(|(_, message)| message.size).sum();
        released.into_iter().map(|(_, message)| message).collect()
    }
}
