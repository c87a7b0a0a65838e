//! Matches answers to requests.
//!
//! The ids of the two sides are unrelated, so a request is known by its side, if that is known, and
//! its id.

use std::collections::HashMap;

use crate::jsonrpc::{Id, Side};

/// An id as programs compare it: `1` and `1.0` are one id, `1` and `"1"` are two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Number(u64),
    Text(String),
}

/// A request that was not answered yet.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRequest {
    pub(super) method: String,
    /// How many requests came before it.
    pub(super) order: u64,
}

/// The open requests of a conversation, by the side that sent them and their id.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    open: HashMap<(Option<Side>, Key), OpenRequest>,
    count: u64,
}

impl Key {
    /// The key of an id; `None` for an absent id and for `null`.
    pub(super) fn of(id: Id<'_>) -> Option<Self> {
        match id {
            Id::Absent | Id::Null => None,
            Id::Number(text) => {
                let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
                Some(Self::Number(number.to_bits()))
            }
            Id::String(text) => serde_json::from_slice(text).ok().map(Self::Text),
        }
    }
}

impl OpenRequests {
    /// Adds a request. False when its side has an open one with the same id.
    pub(super) fn insert(&mut self, requester: Option<Side>, id: Key, method: String) -> bool {
        self.count += 1;
        let order = self.count;
        let open = OpenRequest { method, order };
        self.open.insert((requester, id), open).is_none()
    }

    /// The requests that an answer of `from` with this id can match, the latest first.
    pub(super) fn candidates(
        &self,
        from: Option<Side>,
        id: &Key,
    ) -> Vec<(Option<Side>, OpenRequest)> {
        let requesters = [Some(Side::Client), Some(Side::Agent), None];
        let mut found: Vec<_> = requesters
            .into_iter()
            .filter(|requester| from.is_none() || *requester != from)
            .filter_map(|requester| {
                let open = self.open.get(&(requester, id.clone()))?;
                Some((requester, open.clone()))
            })
            .collect();
        found.sort_by_key(|(_, open)| std::cmp::Reverse(open.order));
        found
    }

    /// Removes a request that was answered.
    pub(super) fn remove(&mut self, requester: Option<Side>, id: Key) {
        self.open.remove(&(requester, id));
    }
}
