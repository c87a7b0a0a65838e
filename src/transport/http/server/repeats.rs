//! Detects messages that a client repeats because it did not receive the response.
//!
//! A POST whose 202 was lost is repeated with the same id and the same body. Messages are
//! remembered by their id and a hash of their text, for a time and up to a number; a notification,
//! which has no id, by the name that a header gives its POST.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use hashlink::LinkedHashMap;
use tokio::time::Instant;

use jsonrpc::{Frame, Id, IdBuf, Role};

/// How long a message is remembered.
const KEEP_FOR: Duration = Duration::from_secs(600);
/// How many are remembered.
const MAX_KEPT: usize = 1024;
/// Longest name of a POST that is used, in bytes.
const MAX_NAME: usize = 64;

/// Messages that were received with an id. Ids of requests and of answers are unrelated.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    hasher: RandomState,
    /// The hash of each, and when it was received; the oldest first.
    seen: LinkedHashMap<(Role, IdBuf), (u64, Instant)>,
}

/// The id under which a notification with this POST name is remembered: a number by its first byte,
/// which no message has.
pub(super) fn id_of_post(name: &str) -> Option<IdBuf> {
    let id = format!("-post {name}");
    (name.len() <= MAX_NAME).then(|| Id::Number(id.as_bytes()).to_owned())
}

impl Repeats {
    /// A hash of a message's text, which differs between processes.
    pub(super) fn hash(&self, frame: &Frame) -> u64 {
        self.hasher.hash_one(frame.as_bytes())
    }

    /// Whether this very message was received before.
    pub(super) fn contains(&self, role: Role, id: &IdBuf, hash: u64, now: Instant) -> bool {
        let seen = self.seen.get(&(role, id.clone()));
        seen.is_some_and(|(before, at)| *before == hash && now - *at < KEEP_FOR)
    }

    /// The client has the answer to its request, so another request may use its id.
    pub(super) fn forget(&mut self, id: &IdBuf) {
        self.seen.remove(&(Role::Call, id.clone()));
    }

    /// Remembers a received message.
    pub(super) fn remember(&mut self, role: Role, id: IdBuf, hash: u64, now: Instant) {
        self.seen.insert((role, id), (hash, now));
        while let Some((_, (_, at))) = self.seen.front()
            && (self.seen.len() > MAX_KEPT || now - *at >= KEEP_FOR)
        {
            self.seen.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_expire_by_age_and_count() {
        let mut repeats = Repeats::default();
        let now = Instant::now();
        let id = |number: usize| Id::Number(number.to_string().as_bytes()).to_owned();
        let hash = repeats.hash(&Frame::from("{}"));
        repeats.remember(Role::Call, id(0), hash, now);
        assert!(repeats.contains(Role::Call, &id(0), hash, now));
        assert!(!repeats.contains(Role::Answer, &id(0), hash, now));
        assert!(!repeats.contains(Role::Call, &id(0), hash, now + KEEP_FOR));
        for number in 1..=MAX_KEPT {
            repeats.remember(Role::Call, id(number), hash, now);
        }
        assert!(!repeats.contains(Role::Call, &id(0), hash, now));
        assert!(repeats.contains(Role::Call, &id(1), hash, now));
        repeats.remember(Role::Call, id(2), hash, now + KEEP_FOR);
        assert_eq!(repeats.seen.len(), 1);
    }
}
