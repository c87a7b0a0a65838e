//! What a canonical message loses on its way to a dialect and back, as data.
//!
//! `lossy` describes it in words; this data lets a test verify the table: what is not stated must
//! come back unchanged, and what is stated must be lost. It has no effect on the translation.

use super::parser::{Located, Parser};
use super::types::Guard;
use crate::dialect::guard::holds;
use crate::dialect::pointer::JsonPointer;
use crate::dialect::tree::Node;

/// Places in a canonical message that do not come back, or come back with another value.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Which canonical messages lose it; empty for all of the rule's.
    pub when: Guard,
    /// The places, relative to params, result or error; a name `*` matches any name or index. The
    /// empty pointer is the whole message.
    pub at: Vec<JsonPointer>,
}

impl Loss {
    /// Whether a canonical message with these params, this result or this error loses it.
    #[must_use]
    pub fn concerns(&self, body: &[u8]) -> bool {
        holds(&Node::raw(body), &self.when)
    }
}

impl Parser<'_> {
    /// The losses a rule states.
    pub(super) fn loses(&self, at: &Located<'_>) -> Vec<Loss> {
        self.list(at, "loses", |at| {
            if !self.object(at, &["when", "at", "why"]) {
                return None;
            }
            let loss = Loss {
                when: at.get("when").map(|at| self.guard(&at)).unwrap_or_default(),
                at: self.list(at, "at", |at| self.pointer(at)),
            };
            if loss.at.is_empty() {
                let remedy = "add `\"at\": [pointers]`; \"\" is the whole message";
                self.fault(&at.pointer, "this loss is nowhere", remedy);
            }
            Some(loss)
        })
    }
}
