//! `bisect --until`: looks for a match in the live conversation.
//!
//! It uses the filter language, so a match may be a message, the duration of an answer, or a lint
//! finding.

use crate::jsonrpc::printable;
use crate::recording::Annotations;
use crate::recording::filter::Filter;
use crate::recording::lint::{Finding, Linter};
use crate::recording::replay::Script;

/// Describes the first message of `live` that matches the filter.
pub(super) fn first_match(filter: &Filter, live: &Script) -> Option<String> {
    let events = live.events();
    let mut annotations = Annotations::for_filter(Some(filter));
    for event in &events {
        annotations.add(event);
    }
    annotations.end();
    let is_match = |n, event| filter.matches(event, annotations.derived(n));
    let at = events.iter().position(|event| is_match(event.n, event))?;
    let step = &live.steps[at];
    let mut text = format!("{}: {}", step.from, step.title());
    if !annotations.derived(step.n).lint.is_empty() {
        let mut linter = Linter::default();
        for event in &events {
            linter.add(event);
        }
        let about = |finding: &&Finding| finding.n == step.n;
        for finding in linter.end().iter().filter(about) {
            text += &format!(" ({} {})", finding.rule.id, finding.what);
        }
    }
    Some(printable(text.as_bytes()))
}
