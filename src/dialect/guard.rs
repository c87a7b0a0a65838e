//! Tests whether the expectations of a guard hold.
//!
//! The rules for one method, and the cases of one rule, test the same few places repeatedly, so the
//! value found at a place is cached for the guards that follow. `rewrite` builds what guards state,
//! and `prefilter` excludes most messages before.

use smallvec::SmallVec;

use super::pointer::JsonPointer;
use super::table::{Expect, Guard, Literal};
use super::text;
use super::tree::Node;
use super::value_ref::ValueRef;

/// The number of cached places; for further ones each guard looks up the value itself.
const CACHED: usize = 8;

/// A value that several guards are tested against.
#[derive(Debug)]
pub(super) struct GuardCache<'t, 'a> {
    scope: &'t Node<'a>,
    found: SmallVec<[(&'t JsonPointer, Option<ValueRef<'t, 'a>>); CACHED]>,
}

impl<'t, 'a> GuardCache<'t, 'a> {
    pub(super) fn new(scope: &'t Node<'a>) -> Self {
        Self {
            scope,
            found: SmallVec::new(),
        }
    }

    /// Whether all expectations hold.
    pub(super) fn meets(&mut self, guard: &'t Guard) -> bool {
        let mut all = guard.iter();
        all.all(|(place, expect)| is_met(self.find(place), expect))
    }

    fn find(&mut self, place: &'t JsonPointer) -> Option<ValueRef<'t, 'a>> {
        let known = self.found.iter().find(|(known, _)| *known == place);
        if let Some((_, found)) = known {
            return *found;
        }
        let found = self.scope.get(place);
        if self.found.len() < CACHED {
            self.found.push((place, found));
        }
        found
    }
}

/// Whether all expectations of one guard hold.
pub(super) fn holds(scope: &Node<'_>, guard: &Guard) -> bool {
    let mut all = guard.iter();
    all.all(|(place, expect)| is_met(scope.get(place), expect))
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
