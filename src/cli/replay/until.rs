//! `bisect --until`: looks for a match in the live conversation.
//!
//! It uses the filter language, so a match may be a message, the duration of an answer, or a lint
//! finding.

use crate::jsonrpc::printable;
use crate::recording::Insight;
use crate::recording::filter::Filter;
use crate::recording::lint::{Finding, Linter};
use crate::recording::replay::Script;

/// Describes the first message of `live` that matches the filter.
pub(super) fn met(filter: &Filter, live: &Script) -> Option<String> {
    let events = live.events();
    let mut insight = Insight::wanted_by(Some(filter));
    for event in &events {
        insight.see(event);
    }
    insight.end();
    let is_met = |n, event| filter.matches(event, insight.facts(n));
    let at = events.iter().position(|event| is_met(event.n, event))?;
    let step = &live.steps[at];
    let mut text = format!("{}: {}", step.from, step.title());
    if !insight.facts(step.n).lint.is_empty() {
        let mut linter = Linter::default();
        for event in &events {
            linter.see(event);
        }
        let about = |finding: &&Finding| finding.n == step.n;
        for finding in linter.end().iter().filter(about) {
            text += &format!(" ({} {})", finding.rule.id, finding.what);
        }
    }
    Some(printable(text.as_bytes()))
}
