//! Handles members that no row and no guard names.

use super::rewrite::{RewriteError, Rewriter};
use super::table::{Case, Rest, Way};
use super::text;
use super::tree::{Blocked, Node};

impl<'a> Rewriter<'a, '_> {
    /// Moves or drops the unnamed members.
    pub(super) fn rest(
        &mut self,
        scope: &mut Node<'a>,
        case: &'a Case,
        cases: &[&'a Case],
    ) -> Result<(), RewriteError> {
        let (from, to) = match (&case.rest, self.way) {
            (Rest::Keep, _) => return Ok(()),
            (Rest::Drop(why), _) => {
                let named = named(cases, self.way, &[]);
                if let Some(members) = scope.members() {
                    let before = members.len();
                    members.retain(|(raw, _)| named.iter().any(|name| text::same_name(raw, name)));
                    if members.len() < before {
                        self.unnamed += before - members.len();
                        self.changed = true;
                        self.dropped.push(why.clone());
                    }
                }
                return Ok(());
            }
            (Rest::Move { dialect, canonical }, Way::Read) => (dialect, canonical),
            (Rest::Move { dialect, canonical }, Way::Write) => (canonical, dialect),
        };
        let named = named(cases, self.way, from.names());
        let inward = to.is_within(from) && to != from;
        let skip = to.names().get(from.names().len()).filter(|_| inward);
        let Some(members) = scope.get_mut(from.names()).and_then(Node::members) else {
            return Ok(());
        };
        let unnamed: Vec<_> = members
            .extract_if(.., |(raw, _)| {
                !named.iter().any(|name| text::same_name(raw, name))
                    && skip.is_none_or(|skip| !text::same_name(raw, skip))
            })
            .collect();
        if members.is_empty() && !from.names().is_empty() {
            scope.take(from.names());
        }
        self.unnamed += unnamed.len();
        for (raw, value) in unnamed {
            let Some(name) = text::unescape(&raw) else {
                continue;
            };
            let mut names: Vec<Box<str>> = to.names().to_vec();
            names.push((&*name).into());
            self.changed = true;
            scope
                .put(&names, value)
                .map_err(|Blocked| RewriteError::Blocked(to.to_string()))?;
        }
        Ok(())
    }
}

/// The members of the object at `from` that guards and rows name, on the source side.
fn named(cases: &[&Case], way: Way, from: &[Box<str>]) -> Vec<Box<str>> {
    let places = cases.iter().flat_map(|case| {
        let rows = case.rows.iter().filter_map(move |row| row.before(way));
        rows.chain(case.before(way).iter().map(|(place, _)| place))
    });
    places
        .filter(|place| place.names().starts_with(from))
        .filter_map(|place| place.names().get(from.len()).cloned())
        .collect()
}
