//! What waits for something, bounded in number and in bytes.

use std::collections::VecDeque;

use super::out::Out;
use crate::message::Message;
use crate::translation::DialectEvent;

/// At most so many of them, with about so many bytes.
#[derive(Debug)]
pub(super) struct Waiting<T, const COUNT: usize, const BYTES: usize> {
    all: VecDeque<(T, usize)>,
    /// The memory that they take.
    pub(super) bytes: usize,
}

/// Updates of sessions that a result is yet to introduce, each with the id of its session.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// How many results that introduce a session are open.
    expected: usize,
    pub(super) updates: Waiting<(String, Message<'static>), 4096, { 8 << 20 }>,
}

impl<T, const COUNT: usize, const BYTES: usize> Default for Waiting<T, COUNT, BYTES> {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<T, const COUNT: usize, const BYTES: usize> Waiting<T, COUNT, BYTES> {
    /// Adds one with so many bytes behind it. Returns it if there are too many.
    pub(super) fn push(&mut self, one: T, size: usize) -> Result<(), T> {
        let size = size_of::<T>().saturating_add(size);
        if self.all.len() >= COUNT || self.bytes.saturating_add(size) > BYTES {
            return Err(one);
        }
        self.bytes += size;
        self.all.push_back((one, size));
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|(one, _)| one)
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let (one, size) = self.all.pop_front()?;
        self.bytes -= size;
        Some(one)
    }

    /// Takes those for which that holds, in their order.
    pub(super) fn take(&mut self, is_it: impl Fn(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for (one, size) in std::mem::take(&mut self.all) {
            if is_it(&one) {
                self.bytes -= size;
                taken.push(one);
            } else {
                self.all.push_back((one, size));
            }
        }
        taken
    }

    /// Takes all.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.take(|_| true)
    }
}

impl Early {
    /// A request that makes a session was sent.
    pub(super) const fn expect(&mut self) {
        self.expected += 1;
    }

    /// Whether a session that is not known may be introduced by a result.
    pub(super) const fn is_expecting(&self) -> bool {
        self.expected > 0
    }

    /// Holds an update.
    pub(super) fn hold(&mut self, session: String, update: &Message<'_>, out: &mut Out<'_>) {
        let size = session.len() + update.size;
        let held = (session, update.to_static());
        match self.updates.push(held, size) {
            Ok(()) => out.note(DialectEvent::Held, "sessions", "an update of a new session"),
            Err(_) => out.dropped("sessions", "an update of a new session: too many wait"),
        }
    }

    /// A result has introduced that session, or none: the updates that have waited for it. When none
    /// is expected any more, the others come second.
    pub(super) fn release(&mut self, session: Option<&str>) -> [Vec<Message<'static>>; 2] {
        self.expected = self.expected.saturating_sub(1);
        let own = self.updates.take(|(of, _)| Some(&**of) == session);
        let is_last = self.expected == 0;
        let rest = self.updates.take(|_| is_last);
        [own, rest].map(|all| all.into_iter().map(|(_, message)| message).collect())
    }
}
