//! Lints a recording, step by step.
//!
//! Linting takes many times longer than reading, so it begins when the recording has been read to
//! its end. A request without an answer becomes a finding once no process writes the recording;
//! until then the answer may come.

use std::io;

use super::content::Content;
use crate::recording::lint::Linter;
use crate::recording::{Parsed, parse_line};

/// How far the linter has come.
#[derive(Default)]
pub(super) struct Lint {
    linter: Linter,
    /// Items and headers that were checked.
    checked: usize,
    headers: usize,
    /// The findings about the end have been made.
    settled: bool,
}

impl Lint {
    /// Checks some more items of what was read. Returns whether there were any.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(super) fn step(&mut self, content: &Content) -> io::Result<bool> {
        let complete = content.progress.borrow().complete;
        let block = content.block(self.checked)?;
        let begun = self.checked > 0 || block.is_some();
        // Headers of the segments up to this one; at the end also of one without events so far.
        let until = block.as_ref().map_or(u16::MAX, |it| it.items[0].segment);
        if block.is_some() || complete && begun {
            let index = content.index();
            let headers = index.headers[self.headers..].iter();
            for (_, header) in headers.take_while(|(segment, _)| *segment <= until) {
                self.linter.begin(header);
                self.headers += 1;
            }
        }
        let Some(block) = block else {
            if complete && !self.settled {
                content.add_findings(&[], self.linter.unanswered(), self.checked);
                self.settled = true;
            }
            return Ok(false);
        };
        let mut found = Vec::new();
        for (_, line) in block.lines() {
            match parse_line(&line) {
                Parsed::Event(event) => found.extend(self.linter.add(&event)),
                Parsed::Invalid(_) => self.linter.skip_line(),
                Parsed::Header(_) => {}
            }
        }
        self.checked += block.items.len();
        self.settled = false;
        content.add_findings(&found, Vec::new(), self.checked);
        Ok(true)
    }
}
