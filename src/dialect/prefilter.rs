//! What a message must contain before a rule may apply to it: a test that skips most messages
//! without an allocation.
//!
//! ACP distinguishes the variants of `session/update` by one member, and so do most rules: when all
//! rules for a method require a string at the same place, one lookup of that place excludes all of
//! them. Otherwise, and for messages that pass, the guards are tested. The test may pass more
//! messages than are changed, never fewer.

use super::guard::holds;
use super::pointer::JsonPointer;
use super::table::{Expect, Guard, Literal};
use super::text::JsonType;
use super::tree::Node;

/// The test for the messages of one way, side, kind and method.
#[derive(Debug, Default)]
pub(super) struct Prefilter {
    /// The place at which all guards require a string, and these strings.
    first: Option<(JsonPointer, Vec<Box<[u8]>>)>,
    /// The guards of the rules.
    guards: Vec<Guard>,
}

impl Prefilter {
    /// Adds messages that meet this guard.
    pub(super) fn add(&mut self, guard: Guard) {
        self.guards.push(guard);
    }

    /// Finds the place that is tested first, when everything has been added.
    pub(super) fn finish(&mut self) {
        let all = &self.guards;
        let mut places = all.first().into_iter().flatten();
        self.first = places.find_map(|(place, _)| {
            let at = |guard: &Guard| {
                let mut own = guard.iter().filter(|(own, _)| own == place);
                own.find_map(|(_, expect)| strings(expect))
            };
            let strings: Option<Vec<_>> = all.iter().map(at).collect();
            let mut strings = strings?.concat();
            strings.sort();
            strings.dedup();
            Some((place.clone(), strings))
        });
    }

    /// Whether a rule may apply to a message with this body.
    pub(super) fn may_match(&self, body: &Node<'_>) -> bool {
        if let Some((place, strings)) = &self.first {
            let Some(found) = body.get(place) else {
                return false;
            };
            let found = found.json();
            let named = || strings.iter().any(|string| **string == *found);
            // A string with escapes may equal one of them.
            let escaped = || memchr::memchr(b'\\', &found).is_some();
            if found.first() != Some(&b'"') || !named() && !escaped() {
                return false;
            }
        }
        self.guards.iter().any(|guard| holds(body, guard))
    }
}

/// The strings that meet an expectation, if no other value does.
fn strings(expect: &Expect) -> Option<Vec<Box<[u8]>>> {
    let literals = match expect {
        Expect::Const(literal) => std::slice::from_ref(literal),
        Expect::In(literals) => literals,
        _ => return None,
    };
    let plain = |Literal(json): &Literal| {
        let is_plain = JsonType::of(json) == JsonType::String && !json.contains(&b'\\');
        is_plain.then(|| json.clone())
    };
    literals.iter().map(plain).collect()
}
