//! What a canonical message loses on its trip to a dialect and back, as data.
//!
//! `lossy` says it in words; this says it so that a test can hold the table to it: whatever is
//! not stated comes back as it was, and what is stated does get lost. Nothing here changes how a
//! message is translated.

use super::parts::{At, Reading};
use super::types::Guard;
use crate::dialect::guard::holds;
use crate::dialect::pointer::Place;
use crate::dialect::tree::Node;

/// Places in a canonical message that do not come back, or come back otherwise.
#[derive(Clone, Debug)]
pub struct Loss {
    /// The canonical messages that lose it; empty for all of the rule's.
    pub when: Guard,
    /// Where it is, relative to params, result or error; a name `*` is any one name or index. The
    /// whole message is the empty pointer.
    pub at: Vec<Place>,
}

impl Loss {
    /// Whether a canonical message with these params, this result or this error loses it.
    #[must_use]
    pub fn concerns(&self, body: &[u8]) -> bool {
        holds(&Node::raw(body), &self.when)
    }
}

impl Reading<'_> {
    /// The losses a rule states.
    pub(super) fn loses(&self, at: &At<'_>) -> Vec<Loss> {
        self.list(at, "loses", |at| {
            if !self.object(at, &["when", "at", "why"]) {
                return None;
            }
            let loss = Loss {
                when: at.get("when").map(|at| self.guard(&at)).unwrap_or_default(),
                at: self.list(at, "at", |at| self.place(at)),
            };
            if loss.at.is_empty() {
                let remedy = "add `\"at\": [pointers]`; \"\" is the whole message";
                self.fault(&at.pointer, "this loss is nowhere", remedy);
            }
            Some(loss)
        })
    }
}
