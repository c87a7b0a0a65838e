//! What a message must contain before a rule may apply to it: a test that skips most messages
//! without an allocation.
//!
//! ACP distinguishes the variants of `session/update` by one member, and so do most rules: when all
//! rules for a method require a string at the same place, one lookup of that place excludes all of
//! them. Otherwise, and for messages that pass, the guards are tested. A rule that only changes
//! values it finds, by a shape or by a list of values, also requires such a value, and one whose
//! last case leaves the message unchanged requires the guard of another case. The test may pass
//! more messages than are changed, never fewer.

use std::collections::BTreeMap;

use super::guard::holds;
use super::pointer::JsonPointer;
use super::table::{
    Case, Conversion, Each, Expect, Guard, Literal, Rest, Rule, Shape, Values, Way, When,
};
use super::text::{self, JsonType};
use super::tree::Node;

/// The test for the messages of one way, side, kind and method.
#[derive(Debug, Default)]
pub(super) struct Prefilter {
    /// The place at which all alternatives require a string, and these strings.
    first: Option<(JsonPointer, Vec<Box<[u8]>>)>,
    alternatives: Vec<Required>,
}

/// What a rule, or one of its cases, requires.
#[derive(Debug)]
struct Required {
    guard: Guard,
    shaped: Option<Shaped>,
}

/// A value that a shape changes.
#[derive(Debug)]
struct Shaped {
    at: JsonPointer,
    /// Whether the shape is that of the elements.
    each: bool,
    /// The guards of the cases that change a value.
    guards: Vec<Guard>,
}

impl Prefilter {
    /// Adds what a rule requires.
    pub(super) fn add_rule(&mut self, rule: &Rule, shapes: &BTreeMap<String, Shape>, way: Way) {
        self.alternatives.extend(of_rule(rule, shapes, way));
    }

    /// Adds messages that meet this guard.
    pub(super) fn add(&mut self, guard: Guard) {
        let shaped = None;
        self.alternatives.push(Required { guard, shaped });
    }

    /// Finds the place that is tested first, when everything has been added.
    pub(super) fn finish(&mut self) {
        let all = &self.alternatives;
        let mut places = all.first().into_iter().flat_map(|one| &one.guard);
        self.first = places.find_map(|(place, _)| {
            let at = |one: &Required| {
                let mut own = one.guard.iter().filter(|(own, _)| own == place);
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
        let is_met = |one: &Required| {
            let shaped = one.shaped.as_ref();
            holds(body, &one.guard) && shaped.is_none_or(|shaped| shaped.is_met(body))
        };
        self.alternatives.iter().any(is_met)
    }
}

impl Shaped {
    fn is_met(&self, body: &Node<'_>) -> bool {
        let Some(found) = body.get(&self.at) else {
            return false;
        };
        let changes = |value: &[u8]| {
            let value = Node::raw(value);
            self.guards.iter().any(|guard| holds(&value, guard))
        };
        let json = found.json();
        match self.each {
            false => changes(&json),
            true => JsonType::of(&json) != JsonType::Array || text::items(&json).any(changes),
        }
    }
}

/// What a rule requires, one alternative for each of its cases.
fn of_rule(rule: &Rule, shapes: &BTreeMap<String, Shape>, way: Way) -> Vec<Required> {
    let base = rule.base.before(way);
    let names = rule.on.what.names();
    let keeps_method =
        names.dialect == names.canonical && rule.on.kinds.is_none() && rule.split.is_none();
    if keeps_method && rule.cases.is_empty() {
        return vec![of_case(base.clone(), &rule.base, shapes, way)];
    }
    let cases = || rule.cases.iter().filter(|case| case.applies(way));
    if !keeps_method || !is_noop(&rule.base) || !ends_with_noop(cases(), way) {
        let (guard, shaped) = (base.clone(), None);
        return vec![Required { guard, shaped }];
    }
    cases()
        .filter(|case| !is_noop(case))
        .map(|case| of_case([&base[..], case.before(way)].concat(), case, shapes, way))
        .collect()
}

fn of_case(mut guard: Guard, case: &Case, shapes: &BTreeMap<String, Shape>, way: Way) -> Required {
    let mut shaped = None;
    match only_row(case) {
        Some((
            place,
            Conversion::Values(Values {
                both,
                read,
                write,
                other: None,
                park: false,
            }),
        )) => {
            let extra = if way == Way::Read { read } else { write };
            let from = |(dialect, canonical): &(Literal, Literal)| match way {
                Way::Read => dialect.clone(),
                Way::Write => canonical.clone(),
            };
            let all = both.iter().chain(extra).map(from).collect();
            guard.push((place.clone(), Expect::In(all)));
        }
        Some((place, Conversion::Shape(name))) => {
            shaped = of_shape(place, false, name, shapes, way);
        }
        Some((place, Conversion::Each(Each::Shape { shape: name }))) => {
            shaped = of_shape(place, true, name, shapes, way);
        }
        _ => {}
    }
    Required { guard, shaped }
}

/// What a shape changes; `None` where it may change every value.
fn of_shape(
    place: &JsonPointer,
    each: bool,
    name: &str,
    shapes: &BTreeMap<String, Shape>,
    way: Way,
) -> Option<Shaped> {
    let Shape(all) = shapes.get(name)?;
    let cases = || all.iter().filter(|case| case.applies(way));
    let changing = cases().filter(|case| !is_noop(case));
    ends_with_noop(cases(), way).then(|| Shaped {
        at: place.clone(),
        each,
        guards: changing.map(|case| case.before(way).clone()).collect(),
    })
}

/// The place at which a case converts, if it has one row with the same place in both columns, and
/// no other effect.
fn only_row(case: &Case) -> Option<(&JsonPointer, &Conversion)> {
    let [row] = &case.rows[..] else {
        return None;
    };
    let [conversion] = &row.convert[..] else {
        return None;
    };
    let plain = row.dialect == row.canonical && row.fill.is_none() && row.drop.is_none();
    let place = row.dialect.as_ref().filter(|_| plain && only_rows(case))?;
    Some((place, conversion))
}

/// Whether the last case leaves messages unchanged.
fn ends_with_noop<'c>(mut cases: impl Iterator<Item = &'c Case>, way: Way) -> bool {
    cases.any(|case| case.before(way).is_empty() && is_noop(case))
}

/// Whether a case has no effect.
fn is_noop(case: &Case) -> bool {
    case.rows.is_empty() && only_rows(case)
}

/// Whether a case has no effect besides its rows.
fn only_rows(case: &Case) -> bool {
    let builds = |guard: &Guard| {
        let mut all = guard.iter();
        all.any(|(_, expect)| matches!(expect, Expect::Const(_)))
    };
    let Case {
        when: When { dialect, canonical },
        rest: Rest::Keep,
        emit,
        answer: None,
        fail: None,
        refuse: None,
        drop: None,
        actions,
        ..
    } = case
    else {
        return false;
    };
    !builds(dialect) && !builds(canonical) && emit.is_empty() && actions.is_empty()
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
