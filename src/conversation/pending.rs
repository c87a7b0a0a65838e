//! The open requests of one side.
//!
//! A JSON-RPC answer carries no method, so that of the request is stored here. Bounded; up to the
//! largest number of requests ever open at once it needs no allocation.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Instant;

use smallvec::SmallVec;

use super::summary::Topic;
use crate::jsonrpc::{Id, IdBuf};

/// The open requests of one side.
#[derive(Debug)]
pub(super) struct Pending {
    open: HashMap<IdBuf, OpenRequest>,
    /// How many open ids a program that converts numbers to doubles would spell differently.
    lossy: usize,
    next: u64,
    limit: usize,
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) method: RawMethod,
    /// What it is about, for observers.
    pub(super) topic: Topic,
    /// When it was sent.
    pub(super) requested_at: Instant,
    order: u64,
}

/// A method, as spelled between its quotes.
pub(super) type RawMethod = SmallVec<[u8; 32]>;

/// Why a request is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    Reused,
    Full,
}

impl Pending {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            open: HashMap::new(),
            lossy: 0,
            next: 0,
            limit,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Stores a request.
    pub(super) fn insert(
        &mut self,
        id: Id<'_>,
        method: &[u8],
        topic: Topic,
        asked_at: Instant,
    ) -> Result<(), Rejection> {
        if self.open.len() >= self.limit {
            return Err(Rejection::Full);
        }
        match self.open.entry(id.to_owned()) {
            Entry::Occupied(_) => Err(Rejection::Reused),
            Entry::Vacant(place) => {
                place.insert(OpenRequest {
                    method: SmallVec::from_slice(method),
                    topic,
                    requested_at: asked_at,
                    order: self.next,
                });
                self.next += 1;
                self.lossy += usize::from(is_lossy(id));
                Ok(())
            }
        }
    }

    /// Whether `id` is in flight.
    pub(super) fn contains(&self, id: &IdBuf) -> bool {
        self.open.contains_key(id)
    }

    /// The method of the request that `id` would answer.
    pub(super) fn method(&self, id: Id<'_>) -> Option<&[u8]> {
        self.open
            .get(&id.to_owned())
            .map(|request| &request.method[..])
    }

    /// Removes the request that `id` answers; also returns the id as the request spelled it, when the
    /// answer spells it differently.
    pub(super) fn answer(&mut self, id: Id<'_>) -> Option<(OpenRequest, Option<IdBuf>)> {
        let id = id.to_owned();
        if let Some((original, request)) = self.open.remove_entry(&id) {
            self.lossy -= usize::from(is_lossy(id.as_id()));
            let differs = original.as_id().json() != id.as_id().json();
            return Some((request, differs.then_some(original)));
        }
        if self.lossy == 0 && !is_lossy(id.as_id()) {
            return None;
        }
        // With two candidates there is no way to choose, and a wrong answer is worse than none.
        let mut candidates = self
            .open
            .keys()
            .filter(|open| open.as_id().same_double(&id.as_id()));
        let original = match (candidates.next(), candidates.next()) {
            (Some(only), None) => only.clone(),
            _ => return None,
        };
        let request = self.open.remove(&original)?;
        self.lossy -= usize::from(is_lossy(original.as_id()));
        Some((request, Some(original)))
    }

    /// Removes all requests and returns them, oldest first.
    pub(super) fn take_all(&mut self) -> Vec<(IdBuf, RawMethod)> {
        self.lossy = 0;
        let mut all: Vec<_> = self.open.drain().collect();
        all.sort_unstable_by_key(|(_, request)| request.order);
        all.into_iter()
            .map(|(id, request)| (id, request.method))
            .collect()
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
