//! Whether what a guard expects is there.
//!
//! The rules for one method, and the cases of one rule, ask for the same few places again and
//! again, so what was found at a place is kept for the guards that follow. Not here: what guards
//! build (see `rewrite`), and how most messages are told apart sooner (see `gate`).

use smallvec::SmallVec;

use super::look::Look;
use super::pointer::Place;
use super::table::{Expect, Guard, Literal};
use super::text;
use super::tree::Node;

/// For so many places it is kept what was found; for further ones each guard looks itself.
const KEPT: usize = 8;

/// A value that guards are asked of, one after another.
#[derive(Debug)]
pub(super) struct Glance<'t, 'a> {
    scope: &'t Node<'a>,
    found: SmallVec<[(&'t Place, Option<Look<'t, 'a>>); KEPT]>,
}

impl<'t, 'a> Glance<'t, 'a> {
    pub(super) fn at(scope: &'t Node<'a>) -> Self {
        Self {
            scope,
            found: SmallVec::new(),
        }
    }

    /// Whether all expectations hold.
    pub(super) fn meets(&mut self, guard: &'t Guard) -> bool {
        let mut all = guard.iter();
        all.all(|(place, expect)| is_met(self.look(place), expect))
    }

    fn look(&mut self, place: &'t Place) -> Option<Look<'t, 'a>> {
        let known = self.found.iter().find(|(known, _)| *known == place);
        if let Some((_, found)) = known {
            return *found;
        }
        let found = self.scope.look(place);
        if self.found.len() < KEPT {
            self.found.push((place, found));
        }
        found
    }
}

/// Whether all expectations of one guard hold.
pub(super) fn holds(scope: &Node<'_>, guard: &Guard) -> bool {
    let mut all = guard.iter();
    all.all(|(place, expect)| is_met(scope.look(place), expect))
}

fn is_met(found: Option<Look<'_, '_>>, expect: &Expect) -> bool {
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

/// Whether a value is one of those that a table wrote.
fn is_among(all: &[Literal], value: &[u8]) -> bool {
    let mut literals = all.iter().map(|literal| &*literal.0);
    literals.clone().any(|literal| literal == value)
        || text::may_be_spelled_otherwise(value)
            && literals.any(|literal| text::equals(literal, value))
}
