//! Values of a conversation that are remembered for messages that omit them.
//!
//! Canonical values are remembered, so a slot is written once and serves every table. All of it is
//! bounded: the oldest value is evicted. `pending` holds the requests in flight, `sessions` the
//! sessions with their tool calls.

use std::collections::{HashMap, VecDeque};

/// Maximum number of values remembered in one conversation.
const ENTRIES: usize = 4096;
/// Maximum number of bytes remembered in one conversation, and of one value.
const BYTES: usize = 4 << 20;
const LONGEST: usize = 256 << 10;

/// The key of a value: its slot, its session (empty when it has none) and its key.
type Key = (usize, Box<str>, Box<str>);

/// The slots of one conversation.
#[derive(Debug, Default)]
pub(super) struct Memory {
    values: HashMap<Key, Box<[u8]>>,
    order: VecDeque<Key>,
    bytes: usize,
    writes: u64,
}

impl Memory {
    /// Remembers a value; the oldest ones are evicted.
    pub(super) fn insert(&mut self, slot: usize, session: &str, key: &str, value: &[u8]) {
        self.writes += 1;
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
            if let Some(removed) = self.values.remove(&oldest) {
                self.bytes -= removed.len() + oldest.1.len() + oldest.2.len();
            }
        }
    }

    /// The value, if it is remembered.
    pub(super) fn recall(&self, slot: usize, session: &str, key: &str) -> Option<&[u8]> {
        let key: Key = (slot, session.into(), key.into());
        self.values.get(&key).map(|value| &**value)
    }

    /// The number of calls of `insert`, whether the value was remembered or not.
    pub(super) const fn writes(&self) -> u64 {
        self.writes
    }
}
