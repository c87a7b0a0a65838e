//! The open requests of one side, by id.

use std::hash::RandomState;

use hashlink::LinkedHashMap;
use hashlink::linked_hash_map::Entry;

use super::{Id, IdBuf};

/// The open requests of one side, in the order in which they were inserted, each with what its
/// owner keeps of it.
///
/// Programs that convert numbers to doubles answer 9007199254740993 with ...992, and 1.0 with 1. So
/// an id that is not open finds the only open one that is the same double; two cannot be
/// distinguished, and a wrong answer is worse than none.
///
/// Up to the largest number of requests ever open at once it needs no allocation.
#[derive(Clone, Debug)]
pub struct PendingRequests<T> {
    /// Peers choose the ids, so the hash is keyed.
    open: LinkedHashMap<IdBuf, T, RandomState>,
    /// How many open ids a program that converts numbers to doubles would spell differently.
    lossy: usize,
    limit: usize,
}

/// Why a request is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Its id is in use.
    Reused,
    /// As many as the limit allows are open.
    Full,
}

/// Without a limit, for those who read what was recorded.
impl<T> Default for PendingRequests<T> {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl<T> PendingRequests<T> {
    /// A table for so many requests.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            open: LinkedHashMap::with_hasher(RandomState::new()),
            lossy: 0,
            limit,
        }
    }

    /// How many requests are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no request is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Stores a request.
    ///
    /// # Errors
    /// When its id is in use or the table is full.
    pub fn insert(&mut self, id: Id<'_>, request: T) -> Result<(), Rejected> {
        if self.open.len() >= self.limit {
            return Err(Rejected::Full);
        }
        match self.open.entry(id.to_owned()) {
            Entry::Occupied(_) => Err(Rejected::Reused),
            Entry::Vacant(place) => {
                place.insert(request);
                self.lossy += usize::from(is_lossy(id));
                Ok(())
            }
        }
    }

    /// The request that `id` answers.
    #[must_use]
    pub fn get(&self, id: Id<'_>) -> Option<&T> {
        self.open.get(&self.open_id(id)?)
    }

    /// The request that `id` answers.
    pub fn get_mut(&mut self, id: Id<'_>) -> Option<&mut T> {
        let id = self.open_id(id)?;
        self.open.get_mut(&id)
    }

    /// Removes the request that `id` answers; also returns the id as the request spelled it.
    pub fn remove(&mut self, id: Id<'_>) -> Option<(IdBuf, T)> {
        let id = self.open_id(id)?;
        let removed = self.open.remove_entry(&id)?;
        self.lossy -= usize::from(is_lossy(removed.0.as_id()));
        Some(removed)
    }

    /// The open requests, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&IdBuf, &T)> {
        self.open.iter()
    }

    /// The open requests, oldest first.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.open.values_mut()
    }

    /// Removes the requests for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&IdBuf, &mut T) -> bool) {
        let lossy = &mut self.lossy;
        self.open.retain(|id, request| {
            let kept = keep(id, request);
            *lossy -= usize::from(!kept && is_lossy(id.as_id()));
            kept
        });
    }

    /// Removes the oldest request.
    pub fn pop_oldest(&mut self) -> Option<(IdBuf, T)> {
        let removed = self.open.pop_front()?;
        self.lossy -= usize::from(is_lossy(removed.0.as_id()));
        Some(removed)
    }

    /// Removes all requests and returns them, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = (IdBuf, T)> {
        self.lossy = 0;
        self.open.drain()
    }

    /// The id of the open request that `id` answers.
    fn open_id(&self, id: Id<'_>) -> Option<IdBuf> {
        let spelled = id.to_owned();
        if self.open.contains_key(&spelled) {
            return Some(spelled);
        }
        if self.lossy == 0 && !is_lossy(id) {
            return None;
        }
        let mut candidates = self
            .open
            .keys()
            .filter(|open| open.as_id().same_double(&id));
        match (candidates.next(), candidates.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        }
    }
}

/// Whether a program that converts numbers to doubles would spell this id differently: it is not a
/// plain integer of at most 15 digits.
fn is_lossy(id: Id<'_>) -> bool {
    match id {
        Id::Number(text) => {
            let digits = text.strip_prefix(b"-").unwrap_or(text);
            digits.len() > 15 || text == b"-0" || !digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_requests_by_their_own_id_or_the_same_double() {
        let open = [
            ("9007199254740993", "a"),
            ("9007199254740997", "b"),
            ("9007199254740996", "c"),
            ("1", "d"),
            ("\"é\"", "e"),
        ];
        for (answer, found) in [
            ("9007199254740993", Some("9007199254740993")),
            ("9007199254740992", Some("9007199254740993")),
            // Two are the same double.
            ("9007199254740996.0", None),
            ("9007199254740997", Some("9007199254740997")),
            ("1.0", Some("1")),
            ("2", None),
            ("\"\\u00e9\"", Some("\"é\"")),
            ("\"1\"", None),
        ] {
            let mut table = PendingRequests::new(open.len());
            for (id, request) in open {
                assert_eq!(table.insert(Id::of_json(id.as_bytes()), request), Ok(()));
            }
            let id = Id::of_json(answer.as_bytes());
            assert_eq!(table.insert(id, "f"), Err(Rejected::Full));
            let removed = table.remove(id).map(|(id, _)| id.as_id().to_string());
            assert_eq!(removed.as_deref(), found, "{answer}");
            let rest: Vec<_> = table.drain().map(|(_, request)| request).collect();
            assert!(rest.is_sorted(), "oldest first: {rest:?}");
            assert_eq!(rest.len(), open.len() - usize::from(found.is_some()));
        }
    }

    #[test]
    fn an_id_in_use_is_rejected() {
        let mut table = PendingRequests::new(9);
        assert_eq!(table.insert(Id::Number(b"1"), ()), Ok(()));
        assert_eq!(table.insert(Id::Number(b"1"), ()), Err(Rejected::Reused));
        assert_eq!(table.insert(Id::String(b"\"1\""), ()), Ok(()));
    }
}
