//! Tests whether the expectations of a guard hold. `rewrite` builds what guards state.

use super::pointer::JsonPointer;
use super::table::{Case, Expect, Literal, Loss, Way};
use super::text;
use super::tree::{Node, ValueRef};

impl Loss {
    /// Whether a canonical message with these params, this result or this error loses it.
    #[must_use]
    pub fn concerns(&self, body: &[u8]) -> bool {
        holds(&Node::raw(body), &self.when.0)
    }
}

/// Whether all expectations of one guard hold.
pub(super) fn holds(scope: &Node<'_>, guard: &[(JsonPointer, Expect)]) -> bool {
    let mut all = guard.iter();
    all.all(|(place, expect)| is_met(scope.get(place), expect))
}

/// The first case that applies to a value in that way.
pub(super) fn first_case<'c>(cases: &'c [Case], way: Way, scope: &Node<'_>) -> Option<&'c Case> {
    let mut all = cases.iter();
    all.find(|case| case.applies(way) && holds(scope, case.before(way)))
}

/// Whether a value, if there is one, meets an expectation.
fn is_met(found: Option<ValueRef<'_, '_>>, expect: &Expect) -> bool {
    let Some(found) = found else {
        return matches!(expect, Expect::Absent(true) | Expect::NotIn(_));
    };
    match expect {
        Expect::Absent(absent) => !absent,
        Expect::Const(literal) => text::equals(&literal.0, &found.json()),
        Expect::Is(types) => types.contains(&found.kind()),
        Expect::In(all) => is_among(all, &found.json()),
        Expect::NotIn(all) => !is_among(all, &found.json()),
        Expect::Matches(pattern) => {
            text::string(&found.json()).is_some_and(|text| pattern.0.is_match(&text))
        }
    }
}

/// Whether a value is one of the literals of a table.
fn is_among(all: &[Literal], value: &[u8]) -> bool {
    all.iter().any(|literal| text::equals(&literal.0, value))
}
