//! Tests whether the expectations of a guard hold. `rewrite` builds what guards state.

use std::iter::once;

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

/// Tests guards on one value. Guards that are tested one after the other are mostly about the same
/// places, or about members of the same object, so what was found last is remembered.
#[derive(Debug)]
pub(super) struct GuardTest<'g, 't, 'a> {
    scope: &'t Node<'a>,
    /// The object at the beginning of the last place, and what is there.
    object: (&'g [Box<str>], Option<ValueRef<'t, 'a>>),
    last: Option<(&'g JsonPointer, Option<ValueRef<'t, 'a>>)>,
}

impl<'g, 't, 'a> GuardTest<'g, 't, 'a> {
    pub(super) fn new(scope: &'t Node<'a>) -> Self {
        Self {
            scope,
            object: (&[], Some(ValueRef::Node(scope))),
            last: None,
        }
    }

    /// Whether all expectations of a guard hold.
    pub(super) fn holds(&mut self, guard: &'g [(JsonPointer, Expect)]) -> bool {
        let mut all = guard.iter();
        all.all(|(place, expect)| is_met(self.find(place), expect))
    }

    fn find(&mut self, place: &'g JsonPointer) -> Option<ValueRef<'t, 'a>> {
        if let Some((known, found)) = self.last
            && known == place
        {
            return found;
        }
        let found = match place.names().split_last() {
            None => self.scope.get(place),
            Some((name, outer)) => {
                if self.object.0 != outer {
                    let object = match self.last {
                        Some((known, found)) if known.names() == outer => found,
                        _ => ValueRef::Node(self.scope).at(outer.iter().map(|name| &**name)),
                    };
                    self.object = (outer, object);
                }
                self.object.1.and_then(|object| object.at(once(&**name)))
            }
        };
        self.last = Some((place, found));
        found
    }
}

/// Whether all expectations of one guard hold.
pub(super) fn holds(scope: &Node<'_>, guard: &[(JsonPointer, Expect)]) -> bool {
    GuardTest::new(scope).holds(guard)
}

/// The first case that applies to a value in that way.
pub(super) fn first_case<'c>(cases: &'c [Case], way: Way, scope: &Node<'_>) -> Option<&'c Case> {
    let mut test = GuardTest::new(scope);
    let mut all = cases.iter();
    all.find(|case| case.applies(way) && test.holds(case.before(way)))
}

/// Whether a value, if there is one, meets an expectation.
pub(super) fn is_met(found: Option<ValueRef<'_, '_>>, expect: &Expect) -> bool {
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
pub(super) fn is_among(all: &[Literal], value: &[u8]) -> bool {
    all.iter().any(|literal| *literal.0 == *value)
        || text::may_be_respelled(value)
            && all.iter().any(|literal| text::equals(&literal.0, value))
}
