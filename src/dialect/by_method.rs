//! What there is for each method, found by the method's bytes.
//!
//! There are few for each way, side and kind of message, and most differ in length, so a search
//! among sorted names is quicker than a hash of the name. Not here: what is found.

use std::collections::HashMap;

/// Something for each of some methods.
#[derive(Debug)]
pub(super) struct ByMethod<T>(Box<[(Box<str>, T)]>);

/// The order they are kept in.
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

    pub(super) fn has(&self, method: &[u8]) -> bool {
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
