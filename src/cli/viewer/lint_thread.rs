//! The thread that lints a recording.
//!
//! Linting takes many times longer than reading, so it has its own thread, which starts when the
//! recording has been read to its end and then follows it. A request without an answer becomes a
//! finding once no process writes the recording; until then the answer may come.

use std::io;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use super::content::{Content, POLL_INTERVAL, line_bytes};
use crate::recording::lint::Linter;
use crate::recording::{Parsed, parse_line};

/// The state of the linting thread.
pub(super) struct LintThread {
    pub(super) recording: Weak<Content>,
    pub(super) stopped: Receiver<()>,
}

impl LintThread {
    /// Lints until the recording is closed.
    pub(super) fn run(self) {
        // An error is reported by the thread that reads.
        let _ = self.lint();
    }

    fn lint(self) -> io::Result<()> {
        let mut linter = Linter::default();
        let (mut begun, mut settled) = (false, false);
        let (mut seen, mut headers) = (0, 0);
        while let Some(recording) = self.recording.upgrade() {
            let (whole, at_rest) = {
                let progress = recording.progress();
                let now = progress.borrow();
                (now.bytes >= now.total && now.revision > 0, now.complete)
            };
            let block = if whole || begun {
                recording.block(seen)?
            } else {
                None
            };
            begun |= block.is_some();
            // Headers of the segments up to this one; at the end also of one without events so far.
            let until = match &block {
                Some((items, _)) => items.first().map_or(0, |item| item.segment),
                None => u16::MAX,
            };
            if block.is_some() || at_rest && begun {
                for (segment, header) in &recording.index().headers[headers..] {
                    if *segment > until {
                        break;
                    }
                    linter.begin(header);
                    headers += 1;
                }
            }
            if let Some((items, block)) = block {
                let begin = items.first().map_or(0, |item| item.at);
                let mut found = Vec::new();
                for item in &items {
                    match parse_line(&line_bytes(&block, begin, item)) {
                        Parsed::Event(event) => found.extend(linter.add(&event)),
                        Parsed::Invalid(_) => linter.skip_line(),
                        Parsed::Header(_) => {}
                    }
                }
                seen += items.len();
                recording.add_findings(&found, Vec::new(), seen);
                settled = false;
                continue;
            }
            if at_rest && !settled {
                recording.add_findings(&[], linter.unanswered(), seen);
                settled = true;
            }
            drop(recording);
            if self.stopped.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
        Ok(())
    }
}
