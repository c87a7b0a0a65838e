//! What only a reader of a whole recording knows of an event: how long its exchange took, and what
//! the linter finds about it.
//!
//! It is shown one event after the other and keeps no bodies. Not here: the pairing (see
//! `conversation`), what is looked for (see `lint`), what is asked about it (see `filter`).

use std::collections::HashMap;

use super::conversation::Conversation;
use super::event::{Event, Header};
use super::filter::{Facts, Field, Filter};
use super::lint::{Finding, Linter};

/// What is known of the events so far.
#[derive(Debug, Default)]
pub struct Insight {
    conversation: Conversation,
    linter: Option<Linter>,
    /// The ids of what was found, by event.
    found: HashMap<u64, Vec<&'static str>>,
}

impl Insight {
    /// Nothing yet; the linter looks on when the filter asks for what it finds.
    #[must_use]
    pub fn wanted_by(filter: Option<&Filter>) -> Self {
        let lints = filter.is_some_and(|filter| filter.asks(Field::Lint));
        Self {
            linter: lints.then(Linter::default),
            ..Self::default()
        }
    }

    /// Takes a header in.
    pub fn begin(&mut self, header: &Header) {
        if let Some(linter) = &mut self.linter {
            linter.begin(header);
        }
    }

    /// Takes an event in.
    pub fn see(&mut self, event: &Event) {
        self.conversation.see(event);
        if let Some(linter) = &mut self.linter {
            keep(&mut self.found, &linter.see(event));
        }
    }

    /// Nothing comes any more: what is open stays so.
    pub fn end(&mut self) {
        if let Some(linter) = self.linter.take() {
            keep(&mut self.found, &linter.rest());
        }
    }

    /// What is known of event `n` so far.
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
