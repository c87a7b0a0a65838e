//! The fields that a rule requires of a message before it has an effect.
//!
//! A rule requires its guard to hold. One that only changes values it finds, by a shape or by a
//! list of values, also requires such a value, and one whose last case leaves the message unchanged
//! requires the guard of another case. The result may pass more messages than are changed, never
//! fewer.

use super::pointer::JsonPointer;
use super::prefilter::{PrefilterBuilder, Required, RequiredField, RequiredFields};
use super::table::{Case, Conversion, Each, Expect, Guard, Literal, NamedShape, Rest, Rule, Way};
use super::text::JsonType;

/// The required fields of a rule, one list for each of its cases.
pub(super) fn of_rule(rule: &Rule, shapes: &[NamedShape], way: Way) -> Vec<RequiredFields> {
    let base = rule.base.before(way);
    let names = rule.on.what.names();
    let keeps_method =
        names.dialect == names.canonical && rule.on.kinds.is_none() && rule.split.is_none();
    if !keeps_method {
        return vec![of_guard(base)];
    }
    if rule.cases.is_empty() {
        return vec![of_case(base, &rule.base, shapes, way)];
    }
    let cases = || rule.cases.iter().filter(|case| case.applies(way));
    if !(is_noop(&rule.base) && ends_with_noop(cases(), way)) {
        return vec![of_guard(base)];
    }
    cases()
        .filter(|case| !is_noop(case))
        .map(|case| of_case(&[&base[..], case.before(way)].concat(), case, shapes, way))
        .collect()
}

/// The fields that a guard requires: strings first, fields that must be missing last.
pub(super) fn of_guard(guard: &Guard) -> RequiredFields {
    fields(guard, None)
}

fn of_case(guard: &Guard, case: &Case, shapes: &[NamedShape], way: Way) -> RequiredFields {
    let work = mapped(case, way).or_else(|| fixed_field(case, shapes, way));
    fields(guard, work)
}

fn fields(guard: &Guard, work: Option<RequiredField>) -> RequiredFields {
    let named = guard.iter().filter_map(|(place, expect)| {
        let strings = strings(expect)?;
        Some((place.clone(), Required::Strings(strings)))
    });
    let others = guard.iter().filter(|(_, expect)| strings(expect).is_none());
    let others = others.map(|(place, expect)| {
        let own = vec![(JsonPointer::root(), expect.clone())];
        (place.clone(), Required::Meets(own))
    });
    let (missing, others): (Vec<RequiredField>, Vec<RequiredField>) =
        others.partition(|(_, wanted)| wanted.is_met(None));
    named.chain(work).chain(others).chain(missing).collect()
}

/// The field that a case maps, if mapping the value at one place is all it does.
fn mapped(case: &Case, way: Way) -> Option<RequiredField> {
    let (place, conversion) = only_row(case)?;
    let Conversion::Values {
        both,
        read,
        write,
        other: None,
        park: false,
    } = conversion
    else {
        return None;
    };
    let extra = if way == Way::Read { read } else { write };
    let from = |(dialect, canonical): &(Literal, Literal)| match way {
        Way::Read => dialect.clone(),
        Way::Write => canonical.clone(),
    };
    let all = both.iter().chain(extra).map(from).collect();
    let required = strings(&Expect::In(all)).map_or(Required::Any, Required::Strings);
    Some((place.clone(), required))
}

/// The field that a case changes by a shape, if that is all it does.
fn fixed_field(case: &Case, shapes: &[NamedShape], way: Way) -> Option<RequiredField> {
    let (place, conversion) = only_row(case)?;
    let (Conversion::Shape(name) | Conversion::Each(Each::Shape(name))) = conversion else {
        return None;
    };
    let shape = shapes.iter().find(|shape| shape.name == *name)?;
    let cases = || shape.cases.iter().filter(|case| case.applies(way));
    if !ends_with_noop(cases(), way) {
        return None;
    }
    let mut builder = PrefilterBuilder::default();
    for case in cases().filter(|case| !is_noop(case)) {
        builder.add(case.before(way));
    }
    let prefilter = builder.build();
    let required = match conversion {
        Conversion::Shape(_) => Required::Value(prefilter),
        _ => Required::Elements(prefilter),
    };
    Some((place.clone(), required))
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
        dialect,
        canonical,
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
