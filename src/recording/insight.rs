//! Properties of an event that depend on the whole recording: the duration of its exchange, and
//! the linter's findings.
//!
//! It is given the events one by one and keeps no bodies.

use std::collections::HashMap;

use super::conversation::Conversation;
use super::event::{Event, Header};
use super::filter::{Facts, Field, Filter};
use super::lint::{Finding, Linter};

/// The annotations of the events so far.
#[derive(Debug, Default)]
pub struct Insight {
    conversation: Conversation,
    linter: Option<Linter>,
    /// The ids of the findings, by event.
    found: HashMap<u64, Vec<&'static str>>,
}

impl Insight {
    /// No events yet; the linter runs only when the filter uses its findings.
    #[must_use]
    pub fn wanted_by(filter: Option<&Filter>) -> Self {
        let lints = filter.is_some_and(|filter| filter.asks(Field::Lint));
        Self {
            linter: lints.then(Linter::default),
            ..Self::default()
        }
    }

    /// Adds a header.
    pub fn begin(&mut self, header: &Header) {
        if let Some(linter) = &mut self.linter {
            linter.begin(header);
        }
    }

    /// Adds an event.
    pub fn see(&mut self, event: &Event) {
        self.conversation.see(event);
        if let Some(linter) = &mut self.linter {
            keep(&mut self.found, &linter.see(event));
        }
    }

    /// Ends the recording: open requests stay unanswered.
    pub fn end(&mut self) {
        if let Some(linter) = self.linter.take() {
            keep(&mut self.found, &linter.rest());
        }
    }

    /// The annotations of event `n` so far.
    #[must_use]
    pub fn facts(&self, n: u64) -> Facts<'_> {
        Facts {
            took: self.conversation.took(n),
            lint: self.found.get(&n).map_or(&[], Vec::as_slice),
        }
    }
}

fn keep(found: &mut HashMap<u64, Vec<&'static str>>, findings: &[Finding]) {
    for finding in findings {
        if let Some(was) = finding.was
            && let Some(known) = found.get_mut(&finding.n)
            && let Some(id) = known.iter_mut().find(|id| **id == was.id)
        {
            *id = finding.rule.id;
            continue;
        }
        found.entry(finding.n).or_default().push(finding.rule.id);
    }
}
