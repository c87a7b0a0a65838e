//! Visits the recordings of a command: prints each name if there are several, and continues after
//! an unreadable one.

use std::path::PathBuf;
use std::process::ExitCode;

use super::paint::{Paint, Tone};
use super::select::Selection;
use crate::cli::console::Output;
use crate::cli::inputs::FilteredFiles;
use crate::jsonrpc::printable;
use crate::recording::filter::Filter;

/// The recordings of a command, and its output.
pub(super) struct Recordings {
    files: Vec<PathBuf>,
    filter: Option<Filter>,
    several: bool,
    /// Whether a name was printed before.
    printed: bool,
    failed: Option<ExitCode>,
    pub(super) output: Output,
    pub(super) paint: Paint,
}

impl Recordings {
    pub(super) fn of((files, filter): FilteredFiles) -> Self {
        let output = Output::new();
        Self {
            several: files.len() > 1,
            files,
            filter,
            printed: false,
            failed: None,
            paint: Paint::of(&output),
            output,
        }
    }

    /// Calls `visit` with each recording, until stdout is closed. An error was reported.
    pub(super) fn each(
        &mut self,
        mut visit: impl FnMut(&mut Self, &Selection) -> Result<(), ExitCode>,
    ) {
        for file in std::mem::take(&mut self.files) {
            // Errors about a file on stderr come after the output about the one before.
            self.output.flush();
            if !self.output.is_open() {
                return;
            }
            let filter = self.filter.clone();
            if let Err(code) = visit(self, &Selection { file, filter }) {
                self.failed.get_or_insert(code);
            }
        }
    }

    /// Prints the name of a recording, if there are several.
    pub(super) fn head(&mut self, selection: &Selection) {
        if !self.several {
            return;
        }
        if std::mem::replace(&mut self.printed, true) {
            self.output.line(b"");
        }
        let name = selection.file.display().to_string();
        let name = format!("{}:", printable(name.as_bytes()));
        let name = self.paint.tone(Tone::Strong, &name);
        self.output.line(name.as_bytes());
    }

    /// The exit code: that of the first unreadable recording, else `code`.
    pub(super) fn done(self, code: u8) -> ExitCode {
        let done = self.output.done(code);
        self.failed.unwrap_or(done)
    }
}
