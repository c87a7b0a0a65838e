//! Lints a recording, step by step.
//!
//! Linting takes many times longer than reading, so it begins when the recording has been read to
//! its end. A request without an answer becomes a finding once no process writes the recording;
//! until then the answer may come.

use std::io;

use super::content::Content;
use crate::recording::lint::Linter;
use crate::recording::{Parsed, Recording, Tail};

/// Items that are checked in one step.
const STEP: usize = 2_000;

/// How far the linter has come.
pub(super) struct Lint {
    linter: Linter,
    tail: Tail,
    /// Items that were checked.
    checked: usize,
    /// The findings about the end have been made.
    settled: bool,
}

impl Lint {
    /// Starts at the beginning of a recording.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn new(recording: Recording) -> io::Result<Self> {
        Ok(Self {
            linter: Linter::default(),
            tail: Tail::open(recording)?,
            checked: 0,
            settled: false,
        })
    }

    /// Checks some more items of those that were read. Returns whether there were any.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(super) fn step(&mut self, content: &Content) -> io::Result<bool> {
        let complete = content.progress.borrow().complete;
        let begin = self.checked;
        let until = content.index().items.len().min(begin + STEP);
        let mut found = Vec::new();
        while self.checked < until
            && let Some(entry) = self.tail.next_entry()?
        {
            self.checked += usize::from(!matches!(entry.parsed, Parsed::Header(_)));
            match &entry.parsed {
                Parsed::Header(header) => self.linter.begin(header),
                Parsed::Event(event) => found.extend(self.linter.add(event)),
                Parsed::Invalid(_) => self.linter.skip_line(),
            }
        }
        if self.checked > begin {
            self.settled = false;
            content.add_findings(&found, Vec::new(), self.checked);
        } else if complete && !self.settled {
            content.add_findings(&[], self.linter.unanswered(), self.checked);
            self.settled = true;
        }
        Ok(self.checked > begin)
    }
}
