//! What a conversation has shown of itself, for the messages that leave it out.
//!
//! Canonical values are remembered, so a slot is written once and serves every table. All of it
//! is bounded: the oldest makes room. Not here: the requests in flight (see `asked`), and sessions
//! with their tool calls (see `sessions`).

use std::collections::{HashMap, VecDeque};

/// Most values remembered in one conversation.
const ENTRIES: usize = 4096;
/// Most bytes remembered in one conversation, and the longest value that is.
const BYTES: usize = 4 << 20;
const LONGEST: usize = 256 << 10;

/// Which value: its slot, its session (empty when it has none) and its key.
type Key = (usize, Box<str>, Box<str>);

/// The slots of one conversation.
#[derive(Debug, Default)]
pub(super) struct Memory {
    values: HashMap<Key, Box<[u8]>>,
    order: VecDeque<Key>,
    bytes: usize,
    told: u64,
}

impl Memory {
    /// Remembers a value; the oldest ones make room.
    pub(super) fn keep(&mut self, slot: usize, session: &str, key: &str, value: &[u8]) {
        self.told += 1;
        if value.len() + session.len() + key.len() > LONGEST {
            return;
        }
        let key: Key = (slot, session.into(), key.into());
        self.bytes += value.len();
        match self.values.insert(key.clone(), value.into()) {
            Some(old) => self.bytes -= old.len(),
            None => {
                self.bytes += key.1.len() + key.2.len();
                self.order.push_back(key);
            }
        }
        while self.order.len() > ENTRIES || self.bytes > BYTES {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(gone) = self.values.remove(&oldest) {
                self.bytes -= gone.len() + oldest.1.len() + oldest.2.len();
            }
        }
    }

    /// Recalls a value.
    pub(super) fn recall(&self, slot: usize, session: &str, key: &str) -> Option<&[u8]> {
        let key: Key = (slot, session.into(), key.into());
        self.values.get(&key).map(|value| &**value)
    }

    /// How many values it was told, those that it remembers and those that it does not.
    pub(super) const fn told(&self) -> u64 {
        self.told
    }
}
