//! Iterates over recordings: prints each name if there are several, and continues after an
//! unreadable one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::vec::IntoIter;

use super::paint::{Paint, Tone};
use super::select::Selection;
use crate::cli::console::Output;
use crate::jsonrpc::printable;
use crate::recording::filter::Filter;

/// The recordings of a command.
pub(super) struct Recordings {
    files: IntoIter<PathBuf>,
    filter: Option<Filter>,
    several: bool,
    /// Whether something was printed before.
    printed: bool,
    failed: Option<ExitCode>,
}

impl Recordings {
    pub(super) fn of(files: Vec<PathBuf>, filter: Option<Filter>) -> Self {
        Self {
            several: files.len() > 1,
            files: files.into_iter(),
            filter,
            printed: false,
            failed: None,
        }
    }

    /// The next recording; `None` if stdout is closed.
    pub(super) fn next(&mut self, output: &mut Output) -> Option<Selection> {
        // Errors about a file on stderr come after the output about the one before.
        output.flush();
        if !output.is_open() {
            return None;
        }
        let filter = self.filter.clone();
        self.files.next().map(|file| Selection { file, filter })
    }

    /// Prints the name of a recording, if there are several.
    pub(super) fn head(&mut self, selection: &Selection, paint: Paint, output: &mut Output) {
        if !self.several {
            return;
        }
        if std::mem::replace(&mut self.printed, true) {
            output.line(b"");
        }
        let name = selection.file.display().to_string();
        let name = printable(name.as_bytes());
        output.line(paint.tone(Tone::Strong, &format!("{name}:")).as_bytes());
    }

    /// Notes that a recording could not be read, which has been reported.
    pub(super) fn fail(&mut self, code: ExitCode) {
        self.failed.get_or_insert(code);
    }

    /// The exit code: that of the first unreadable recording, else `code`.
    pub(super) fn done(self, output: Output, code: u8) -> ExitCode {
        let done = output.done(code);
        self.failed.unwrap_or(done)
    }
}
