//! `bisect --until`: something in the live conversation that is looked for.
//!
//! It is said in the filter language, so that it may be a message, how long an answer took, or what
//! the linter finds. Not here: the search for the prefix (see `bisect`).

use std::collections::HashMap;

use crate::recording::Conversation;
use crate::recording::filter::{Facts, Filter};
use crate::recording::lint::{Finding, Linter};
use crate::recording::replay::Script;
use crate::wire::printable;

/// The first message of `live` that goes with the filter, for a person.
pub(super) fn met(filter: &Filter, live: &Script) -> Option<String> {
    let events = live.events();
    let mut conversation = Conversation::default();
    let mut linter = Linter::default();
    for event in &events {
        conversation.see(event);
        linter.see(event);
    }
    let mut took = HashMap::new();
    for exchange in conversation.exchanges() {
        if let (Some(answer), Some(lasted)) = (exchange.answer, exchange.took()) {
            took.insert(exchange.n, lasted);
            took.insert(answer.n, lasted);
        }
    }
    let mut found: HashMap<u64, Vec<Finding>> = HashMap::new();
    for finding in linter.end() {
        found.entry(finding.n).or_default().push(finding);
    }
    events.iter().zip(&live.steps).find_map(|(event, step)| {
        let about = found.get(&event.n).map_or(&[][..], Vec::as_slice);
        let ids: Vec<&str> = about.iter().map(|finding| finding.rule.id).collect();
        let facts = Facts {
            took: took.get(&event.n).copied(),
            lint: &ids,
        };
        filter.matches(event, facts).then(|| {
            let mut text = format!("{}: {}", step.from, step.title());
            for finding in about {
                text += &format!(" ({} {})", finding.rule.id, finding.what);
            }
            printable(text.as_bytes())
        })
    })
}
