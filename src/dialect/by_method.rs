//! A map from methods to values, looked up by the method's bytes.
//!
//! There are few entries for each way, side and kind of message, and most differ in length, so a
//! binary search in sorted names is faster than hashing the name.

use std::collections::HashMap;

/// A value for each of some methods.
#[derive(Debug)]
pub(super) struct ByMethod<T>(Box<[(Box<str>, T)]>);

/// The order of the entries.
fn order(name: &[u8]) -> (usize, &[u8]) {
    (name.len(), name)
}

impl<T> ByMethod<T> {
    pub(super) fn get(&self, method: &[u8]) -> Option<&T> {
        let found = self
            .0
            .binary_search_by(|(name, _)| order(name.as_bytes()).cmp(&order(method)));
        found.ok().map(|at| &self.0[at].1)
    }

    pub(super) fn contains(&self, method: &[u8]) -> bool {
        self.get(method).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> From<HashMap<Box<str>, T>> for ByMethod<T> {
    fn from(all: HashMap<Box<str>, T>) -> Self {
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable_by(|(one, _), (two, _)| {
            order(one.as_bytes()).cmp(&order(two.as_bytes()))
        });
        Self(all.into())
    }
}
