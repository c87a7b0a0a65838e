//! Whether what a guard expects is there.
//!
//! Not here: what guards build (see `rewrite`), and how most messages are told apart sooner (see
//! `gate`).

use super::pointer::Place;
use super::table::{Expect, Guard};
use super::text;
use super::tree::Node;

/// Whether all expectations hold.
pub(super) fn holds(scope: &Node<'_>, guard: &Guard) -> bool {
    guard
        .iter()
        .all(|(place, expect)| meets(scope, place, expect))
}

fn meets(scope: &Node<'_>, place: &Place, expect: &Expect) -> bool {
    let found = scope.look(place);
    let Some(look) = found else {
        return matches!(expect, Expect::Absent(true) | Expect::NotIn(_));
    };
    match expect {
        Expect::Absent(absent) => !absent,
        Expect::Const(literal) => text::equals(&literal.0, &look.json()),
        Expect::Is(types) => types.contains(&look.kind()),
        Expect::In(all) => {
            let json = look.json();
            all.iter().any(|literal| text::equals(&literal.0, &json))
        }
        Expect::NotIn(all) => {
            let json = look.json();
            !all.iter().any(|literal| text::equals(&literal.0, &json))
        }
        Expect::Matches(regex) => {
            text::string(&look.json()).is_some_and(|text| regex.is_match(&text))
        }
    }
}
