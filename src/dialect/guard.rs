//! Tests whether the expectations of a guard hold.
//!
//! `rewrite` builds what guards state, and `prefilter` excludes most messages before.

use super::table::{Case, Expect, Guard, Literal, Loss, Way};
use super::text;
use super::tree::{Node, ValueRef};

impl Loss {
    /// Whether a canonical message with these params, this result or this error loses it.
    #[must_use]
    pub fn concerns(&self, body: &[u8]) -> bool {
        holds(&Node::raw(body), &self.when)
    }
}

/// Whether all expectations of one guard hold.
pub(super) fn holds(scope: &Node<'_>, guard: &Guard) -> bool {
    let mut all = guard.iter();
    all.all(|(place, expect)| is_met(scope.get(place), expect))
}

/// The first case that applies to a value in that way.
pub(super) fn first_case<'c>(cases: &'c [Case], way: Way, scope: &Node<'_>) -> Option<&'c Case> {
    let mut all = cases.iter();
    all.find(|case| case.applies(way) && holds(scope, case.before(way)))
}

fn is_met(found: Option<ValueRef<'_, '_>>, expect: &Expect) -> bool {
    let Some(look) = found else {
        return matches!(expect, Expect::Absent(true) | Expect::NotIn(_));
    };
    match expect {
        Expect::Absent(absent) => !absent,
        Expect::Const(literal) => text::equals(&literal.0, &look.json()),
        Expect::Is(types) => types.contains(&look.kind()),
        Expect::In(all) => is_among(all, &look.json()),
        Expect::NotIn(all) => !is_among(all, &look.json()),
        Expect::Matches(regex) => {
            text::string(&look.json()).is_some_and(|text| regex.is_match(&text))
        }
    }
}

/// Whether a value is one of the literals of a table.
fn is_among(all: &[Literal], value: &[u8]) -> bool {
    let mut literals = all.iter().map(|literal| &*literal.0);
    literals.clone().any(|literal| literal == value)
        || text::may_be_respelled(value) && literals.any(|literal| text::equals(literal, value))
}
