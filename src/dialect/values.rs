//! Maps single values; originals that would not come back are parked beside them.

use super::rewrite::Rewriter;
use super::table::{Conversion, Literal, Row, Way};
use super::text;
use super::tree::Node;

impl<'a> Rewriter<'a, '_> {
    /// Maps one value; one that would not come back is parked beside it.
    pub(super) fn values(
        &mut self,
        scope: &mut Node<'a>,
        row: &'a Row,
        conversion: &'a Conversion,
        value: Node<'a>,
    ) -> Node<'a> {
        let Conversion::Values { park, .. } = conversion else {
            return value;
        };
        let parked = row.parking.as_deref().filter(|_| *park);
        if let (Way::Write, Some(place)) = (self.way, parked)
            && let Some(original) = scope.take(place)
        {
            self.changed = true;
            let mapped = mapped(conversion, Way::Read, &original.json());
            if mapped.is_some_and(|(literal, _)| text::equals(&literal.0, &value.json())) {
                return original;
            }
        }
        let Some((literal, exact)) = mapped(conversion, self.way, &value.json()) else {
            return value;
        };
        if text::equals(&literal.0, &value.json()) {
            return value;
        }
        self.changed = true;
        if let (Way::Read, false, Some(place)) = (self.way, exact, parked) {
            // If it cannot be parked it is only lost on the way back.
            let _ = scope.put_borrowed(place, value);
        }
        Node::raw(&literal.0)
    }
}

/// The value that one is mapped to, and whether the way back restores the original.
fn mapped<'a>(conversion: &'a Conversion, way: Way, json: &[u8]) -> Option<(&'a Literal, bool)> {
    let Conversion::Values {
        both,
        read,
        write,
        other,
        ..
    } = conversion
    else {
        return None;
    };
    let find = |pairs: &'a [(Literal, Literal)]| {
        let sides = pairs.iter().map(|(one, two)| match way {
            Way::Read => (one, two),
            Way::Write => (two, one),
        });
        sides
            .into_iter()
            .find(|(from, _)| text::equals(&from.0, json))
            .map(|(_, to)| to)
    };
    if let Some(to) = find(both) {
        return Some((to, true));
    }
    let (extra, other) = match way {
        Way::Read => (read, other.as_ref()),
        // Extra pairs for writing also have the dialect's value first.
        Way::Write => (write, None),
    };
    find(extra).or(other).map(|to| (to, false))
}
