//! Which rule of a table is for a message, and which of its cases.
//!
//! The first whose guards hold. Not here: carrying it out (see `step`), and how messages are told
//! for which there is none (see `gate`).

use super::asked::Asked;
use super::guard::Glance;
use super::message::Message;
use super::name::Name;
use super::program::Layer;
use super::table::{Case, Rule, Way};
use crate::jsonrpc::Side;

/// What a table has for a message.
pub(super) enum Choice<'a> {
    /// This rule, with its case.
    Rule(&'a Rule, Option<&'a Case>),
    /// This rule, but none of its cases.
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

/// The case of a rule that is for a message: `Some(None)` where the rule has none, `None` where
/// none of its cases fits.
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

/// Whether a rule for answers is for the answer to this pair of methods.
fn fits_pair(rule: &Rule, [dialect, canonical]: [&Name; 2]) -> bool {
    let names = rule.on.what.names();
    let fits = |name: &Option<String>, own: &str| {
        name.as_deref()
            .is_none_or(|name| name == "*" || name == own || *name == **canonical)
    };
    fits(&names.dialect, dialect) && fits(&names.canonical, canonical)
}
