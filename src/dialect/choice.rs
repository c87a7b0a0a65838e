//! Finds the rule of a table that applies to a message, and its case: the first whose guards hold.
//!
//! `step` applies it; `prefilter` skips most messages without a rule before.

use super::asked::Asked;
use super::guard::Glance;
use super::message::Message;
use super::name::Name;
use super::program::Layer;
use super::table::{Case, Rule, Way};
use crate::jsonrpc::Side;

/// The result of the search in a table.
pub(super) enum Choice<'a> {
    /// This rule, with its case.
    Rule(&'a Rule, Option<&'a Case>),
    /// This rule, but none of its cases applies.
    Unmatched(&'a Rule),
    Nothing,
}

/// Finds the rule for a message: the first whose guard holds.
pub(super) fn choose<'a>(
    layer: &'a Layer,
    way: Way,
    from: Side,
    message: &Message<'_>,
    asked: &Asked,
) -> Choice<'a> {
    let answers = message.kind.is_answer();
    let pair = [&asked.dialect, &asked.canonical];
    let names = match (answers, pair[0] == pair[1]) {
        (false, _) => &[&message.method][..],
        (true, true) => &pair[1..],
        (true, false) => &pair,
    };
    let mut glance = Glance::at(&message.body);
    let mut choice = Choice::Nothing;
    for name in names {
        let rules = layer.rules(way, from, message.kind, name);
        for rule in rules.filter(|rule| !answers || fits_pair(rule, pair)) {
            if !glance.meets(rule.base.before(way)) {
                continue;
            }
            match fitting(rule, way, &mut glance) {
                None => choice = Choice::Unmatched(rule),
                Some(case) => return Choice::Rule(rule, case),
            }
        }
    }
    choice
}

/// The case of a rule that applies to a message: `Some(None)` where the rule has no cases, `None`
/// where none of its cases applies.
pub(super) fn fitting<'t, 'a: 't>(
    rule: &'a Rule,
    way: Way,
    glance: &mut Glance<'t, '_>,
) -> Option<Option<&'a Case>> {
    let works = |case: &&'a Case| case.works(way) && glance.meets(case.before(way));
    match rule.cases.iter().find(works) {
        None if !rule.cases.is_empty() => None,
        case => Some(case),
    }
}

/// Whether a rule for answers applies to the answer to this pair of methods.
fn fits_pair(rule: &Rule, [dialect, canonical]: [&Name; 2]) -> bool {
    let names = rule.on.what.names();
    let fits = |name: &Option<String>, own: &str| {
        name.as_deref()
            .is_none_or(|name| name == "*" || name == own || *name == **canonical)
    };
    fits(&names.dialect, dialect) && fits(&names.canonical, canonical)
}
