//! Finds the rule of a table that applies to a message, and its case: the first whose guards hold.
//!
//! `step` applies it; `prefilter` skips most messages without a rule before.

use super::guard::{first_case, holds};
use super::message::Message;
use super::methods::MethodName;
use super::pending::PendingRequest;
use super::program::Layer;
use super::table::{Case, Rule, Way};
use super::tree::Node;
use crate::jsonrpc::Side;

/// The result of the search in a table.
pub(super) enum FoundRule<'a> {
    /// This rule, with its case.
    Rule(&'a Rule, Option<&'a Case>),
    /// This rule, but none of its cases applies.
    Unmatched(&'a Rule),
    Nothing,
}

/// Finds the rule for a message: the first whose guard holds.
pub(super) fn find_rule<'a>(
    layer: &'a Layer,
    way: Way,
    from: Side,
    message: &Message<'_>,
    pending: &PendingRequest,
) -> FoundRule<'a> {
    let answers = message.kind.is_answer();
    let pair = [&pending.dialect, &pending.canonical];
    let names = match (answers, pair[0] == pair[1]) {
        (false, _) => &[&message.method][..],
        (true, true) => &pair[1..],
        (true, false) => &pair,
    };
    let mut choice = FoundRule::Nothing;
    for name in names {
        let rules = layer.rules(way, from, message.kind, name);
        for rule in rules.filter(|rule| !answers || fits_pair(rule, pair)) {
            if !holds(&message.body, rule.base.before(way)) {
                continue;
            }
            match find_case(rule, way, &message.body) {
                None => choice = FoundRule::Unmatched(rule),
                Some(case) => return FoundRule::Rule(rule, case),
            }
        }
    }
    choice
}

/// The case of a rule that applies to a message: `Some(None)` where the rule has no cases, `None`
/// where none of its cases applies.
pub(super) fn find_case<'a>(rule: &'a Rule, way: Way, body: &Node<'_>) -> Option<Option<&'a Case>> {
    match first_case(&rule.cases, way, body) {
        None if !rule.cases.is_empty() => None,
        case => Some(case),
    }
}

/// Whether a rule for answers applies to the answer to this pair of methods.
fn fits_pair(rule: &Rule, [dialect, canonical]: [&MethodName; 2]) -> bool {
    let names = rule.on.what.names();
    let fits = |name: &Option<String>, own: &str| {
        name.as_deref()
            .is_none_or(|name| name == "*" || name == own || *name == **canonical)
    };
    fits(&names.dialect, dialect) && fits(&names.canonical, canonical)
}
