//! Properties of an event that depend on the whole recording: the duration of its exchange, and
//! the linter's findings.
//!
//! It is given the events one by one and keeps no bodies.

#![warn(clippy::indexing_slicing)]

use std::collections::HashMap;

use super::filter::{DerivedFields, Field, Filter};
use super::lint::{Finding, Linter};
use recording::{Exchanges, Parsed, RecordedEvent};

/// The annotations of the events so far.
#[derive(Debug, Default)]
pub struct Annotations {
    exchanges: Exchanges,
    linter: Option<Linter>,
    /// The ids of the findings, by event.
    findings: HashMap<u64, Vec<&'static str>>,
}

impl Annotations {
    /// No events yet; the linter runs only when the filter uses its findings.
    #[must_use]
    pub fn for_filter(filter: Option<&Filter>) -> Self {
        let lints = filter.is_some_and(|filter| filter.uses(Field::Lint));
        Self {
            linter: lints.then(Linter::default),
            ..Self::default()
        }
    }

    /// The requests so far, with their answers.
    #[must_use]
    pub const fn exchanges(&self) -> &Exchanges {
        &self.exchanges
    }

    /// Adds a line.
    pub fn add_line(&mut self, line: &Parsed) {
        match (line, &mut self.linter) {
            (Parsed::Event(event), _) => self.add(event),
            (Parsed::Header(header), Some(linter)) => linter.begin(header),
            _ => {}
        }
    }

    /// Adds an event.
    pub fn add(&mut self, event: &RecordedEvent) {
        self.exchanges.add(event);
        if let Some(linter) = &mut self.linter {
            store(&mut self.findings, &linter.add(event));
        }
    }

    /// Ends the recording: open requests stay unanswered.
    pub fn end(&mut self) {
        if let Some(linter) = self.linter.take() {
            store(&mut self.findings, &linter.unanswered());
        }
    }

    /// The annotations of event `n` so far.
    #[must_use]
    pub fn derived(&self, n: u64) -> DerivedFields<'_> {
        DerivedFields {
            duration: self.exchanges.duration(n),
            lint: self.findings.get(&n).map_or(&[], Vec::as_slice),
        }
    }
}

fn store(found: &mut HashMap<u64, Vec<&'static str>>, findings: &[Finding]) {
    for finding in findings {
        if let Some(was) = finding.repaired_from
            && let Some(known) = found.get_mut(&finding.n)
            && let Some(id) = known.iter_mut().find(|id| **id == was.id)
        {
            *id = finding.rule.id;
            continue;
        }
        found.entry(finding.n).or_default().push(finding.rule.id);
    }
}
