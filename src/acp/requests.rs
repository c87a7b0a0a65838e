//! Matches answers to requests.
//!
//! The ids of the two sides are unrelated, so each side's open requests have a table of their own.
//! Requests of an unknown side go to a third table.

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

/// The open requests of a conversation.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    open: [HashMap<Key, OpenRequest>; 3],
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
    const REQUESTERS: [Option<Side>; 3] = [Some(Side::Client), Some(Side::Agent), None];

    fn table(&mut self, requester: Option<Side>) -> &mut HashMap<Key, OpenRequest> {
        &mut self.open[match requester {
            Some(Side::Client) => 0,
            Some(Side::Agent) => 1,
            None => 2,
        }]
    }

    /// Adds a request. False when its side has an open one with the same id.
    pub(super) fn insert(&mut self, requester: Option<Side>, id: Key, method: String) -> bool {
        self.count += 1;
        let turn = self.count;
        self.table(requester)
            .insert(
                id,
                OpenRequest {
                    method,
                    order: turn,
                },
            )
            .is_none()
    }

    /// The requests that an answer of `from` with this id can match, the latest first.
    pub(super) fn candidates(
        &self,
        from: Option<Side>,
        id: &Key,
    ) -> Vec<(Option<Side>, OpenRequest)> {
        let mut found: Vec<_> = Self::REQUESTERS
            .iter()
            .zip(&self.open)
            .filter(|(requester, _)| from.is_none() || **requester != from)
            .filter_map(|(requester, open)| Some((*requester, open.get(id)?.clone())))
            .collect();
        found.sort_by_key(|(_, open)| std::cmp::Reverse(open.order));
        found
    }

    /// Removes a request that was answered.
    pub(super) fn remove(&mut self, requester: Option<Side>, id: &Key) {
        self.table(requester).remove(id);
    }
}
