//! The thread that reads and lints a recording.
//!
//! It reads from the beginning to the end, then lints, which takes many times longer, and polls for
//! more. What has been read is available at any time, so the first events of a large recording can be
//! shown at once. A request without an answer becomes a finding once no process writes the recording.

use std::io;
use std::path::Path;
use std::sync::Weak;
use std::thread;
use std::time::{Duration, SystemTime};

use super::content::{Content, Progress};
use analysis::lint::Linter;
use panics::{self, Place};
use recording::{Entry, Parsed, Recording, Tail, is_locked, open, unix_micros};

/// Time between two polls at the end of a recording.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// A recording younger than this is assumed to be written.
const MIN_AGE: Duration = Duration::from_secs(2);

/// Lines that are added under one lock of the index, so that requests get a turn.
const BATCH: usize = 2_000;

/// Items that are checked in one step.
const LINT_STEP: usize = 2_000;

/// How far the linter has come.
struct Lint {
    linter: Linter,
    tail: Tail,
    /// Items that were checked.
    checked: usize,
    /// The findings about the end have been made.
    settled: bool,
}

/// Reads and lints until the recording is closed.
pub(super) fn read(content: &Weak<Content>, recording: Recording) {
    let fault = || {
        Err(io::Error::other(
            "a fault of the viewer; the log has the place",
        ))
    };
    let read = panics::catch(Place::Viewer, || follow(content, recording));
    if let Err(error) = read.unwrap_or_else(fault)
        && let Some(content) = content.upgrade()
    {
        content.progress.send_modify(|progress| {
            progress.revision += 1;
            progress.error = Some(error.to_string());
        });
    }
}

fn follow(content: &Weak<Content>, recording: Recording) -> io::Result<()> {
    let mut lint = Lint {
        linter: Linter::default(),
        tail: Tail::open(recording.clone())?,
        checked: 0,
        settled: false,
    };
    let mut tail = Tail::open(recording)?;
    loop {
        let mut lines = Vec::new();
        while lines.len() < BATCH
            && let Some(entry) = tail.next_entry()?
        {
            let segment = u16::try_from(tail.segment()).unwrap_or(u16::MAX);
            lines.push((segment, entry));
        }
        let Some(content) = content.upgrade() else {
            return Ok(());
        };
        add(&content, &mut tail, &lines)?;
        // Reading goes first, until all has been read.
        let linted = lines.len() < BATCH && lint.step(&content)?;
        drop(content);
        if lines.is_empty() && !linted {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Adds lines, and wakes waiting requests if anything has changed.
fn add(content: &Content, tail: &mut Tail, lines: &[(u16, Entry)]) -> io::Result<()> {
    let mut files = content.files.lock();
    while files.len() <= tail.segment() {
        let file = open(tail.path(files.len()))?;
        files.push(file);
    }
    drop(files);
    let (bytes, total) = tail.progress()?;
    let total = total.max(bytes);
    let mut index = content.index();
    for (segment, entry) in lines {
        index.add(*segment, entry);
    }
    let header = index.summary.header.as_ref();
    let began = header.map_or(0, |header| header.began);
    // The index stays locked, so that it and the progress are of the same moment.
    content.progress.send_if_modified(|progress| {
        // If it is complete, this is checked again only after it has grown.
        let complete = lines.len() < BATCH
            && (lines.is_empty() && progress.complete
                || tail.has_ended()
                || !is_written(tail.path(tail.segment()), began));
        let known = (progress.bytes, progress.total, progress.complete);
        let changed = !lines.is_empty() || (bytes, total, complete) != known;
        *progress = Progress {
            revision: progress.revision + u64::from(changed),
            bytes,
            total,
            complete,
            error: None,
        };
        changed
    });
    Ok(())
}

/// Whether a process writes the segment at `path`: the writer has it locked.
pub(super) fn is_written(path: &Path, began: u64) -> bool {
    // The writer may not have locked a new file yet, and must find it unlocked.
    let age = unix_micros(SystemTime::now()).checked_sub(began);
    age.is_some_and(|age| Duration::from_micros(age) < MIN_AGE) || is_locked(path)
}

impl Lint {
    /// Checks some more items of those that were read. Returns whether there were any.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn step(&mut self, content: &Content) -> io::Result<bool> {
        let complete = content.progress.borrow().complete;
        let begin = self.checked;
        let until = content.index().items.len().min(begin + LINT_STEP);
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
            content.add_findings(found, Vec::new(), self.checked);
        } else if complete && !self.settled {
            content.add_findings(Vec::new(), self.linter.unanswered(), self.checked);
            self.settled = true;
        }
        Ok(self.checked > begin)
    }
}
