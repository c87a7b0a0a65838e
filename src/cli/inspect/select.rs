//! From the files and the filter of a command line to the events that a subcommand works on.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::cli::console::{self, Output, note};
use crate::cli::exit;
use crate::cli::inputs::FilteredFiles;
use crate::cli::recordings::{self, LAST};
use crate::cli::text::Tone;
use analysis::Annotations;
use analysis::filter::{Field, Filter};
use jsonrpc::{Choice, Side, printable};
use recording::{
    Entry, Header, NotRecording, Parsed, RecordedEvent, Recording, Summary, View, ViewFilter,
};

/// A recording and a filter of its events.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// The recording, by path or name; of one in several segments, any of them
    #[arg(value_name = "FILE", default_value = LAST)]
    pub(super) file: PathBuf,
    /// A filter of events, such as `method:session/* and dur>2s`; the fields are below
    #[arg(value_name = "FILTER")]
    pub(super) filter: Option<Filter>,
}

/// An open recording, with what must be known from all of it.
#[derive(Debug)]
pub(super) struct OpenSelection<'a> {
    selection: &'a Selection,
    recording: Recording,
    /// The messages in the view.
    pub(super) view: ViewFilter,
    /// Whether there are messages received from the client, and from the agent.
    pub(super) received: [bool; 2],
    pub(super) summary: Summary,
    pub(super) annotations: Annotations,
}

/// A part of a recording.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    Header(&'a Header),
    Event(&'a RecordedEvent),
    /// A line that cannot be read.
    Damaged,
}

/// The recordings of a command, and its output. The name of each is printed if there are several,
/// and an unreadable one does not end the command.
pub(super) struct Recordings {
    files: Vec<PathBuf>,
    filter: Option<Filter>,
    several: bool,
    /// Whether a name was printed before.
    printed: bool,
    failed: Option<ExitCode>,
    pub(super) output: Output,
}

/// One line for each field of the language, for `--help`.
pub(super) fn help() -> String {
    let mut text = String::from("Filters join terms with and, or, not and parentheses:\n");
    for field in Field::ALL {
        let (example, what) = field.description();
        text += &format!("  {example:<20} {what}\n");
    }
    text.trim_end().to_owned()
}

/// Opens the recording that the file at `path` belongs to. Prints an error and returns the exit
/// code.
pub(super) fn recording(path: &Path) -> Result<Recording, ExitCode> {
    let recording = open_unchecked(path)?;
    let checked = recording.check();
    checked.map_err(|misfit| report_unusable(path, &misfit))?;
    Ok(recording)
}

/// Like [`fn@recording`], without a check of the content.
pub(super) fn open_unchecked(path: &Path) -> Result<Recording, ExitCode> {
    let path = &recordings::locate(path)?;
    if let Some(misfit) = NotRecording::of(path) {
        return Err(report_unusable(path, &misfit));
    }
    let found = std::fs::File::open(path).and_then(|_| Recording::of(path));
    found.map_err(|error| report_unreadable(path, &error))
}

/// Prints why a file cannot be read as a recording.
pub(super) fn report_unusable(path: &Path, misfit: &NotRecording) -> ExitCode {
    match misfit {
        NotRecording::Unreadable(error) => report_unreadable(path, error),
        misfit => exit::fail(exit::NO_INPUT, &format!("{}: {misfit}", path.display())),
    }
}

/// Prints that a file cannot be read.
pub(super) fn report_unreadable(path: &Path, error: &io::Error) -> ExitCode {
    let (file, text) = (path.display().to_string(), error.to_string());
    // Some errors name the file themselves.
    if text.starts_with(&file) {
        return exit::fail(exit::NO_INPUT, &text);
    }
    let mut why = format!("{file}: {}", console::explain(error));
    let folder = path.parent();
    let missing = folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    if let Some(folder) = missing {
        why += &format!(
            ": the folder {} does not exist; `acp-relay inspect ls DIR` lists the recordings in one",
            folder.display()
        );
    }
    exit::fail(exit::NO_INPUT, &why)
}

/// The lines of a recording. An error was reported.
fn entries<'a>(
    file: &'a Path,
    recording: &'a Recording,
) -> impl Iterator<Item = Result<Entry, ExitCode>> + 'a {
    let entries = recording.entries();
    entries.map(|entry| match entry {
        Ok((_, entry)) => Ok(entry),
        Err(error) => Err(report_unreadable(file, &error)),
    })
}

/// Reads the name of a view.
pub(super) fn view() -> impl TypedValueParser<Value = View> {
    let name = |name: &'static str, help: &'static str| PossibleValue::new(name).help(help);
    let names = PossibleValuesParser::new([
        name(
            "received",
            "What the relay received from both sides, before translation",
        ),
        name("client", "What the client sent and received"),
        name("agent", "What the agent sent and received"),
    ]);
    names.map(|name| match &*name {
        "client" => View::At(Side::Client),
        "agent" => View::At(Side::Agent),
        _ => View::Received,
    })
}

impl Selection {
    /// Opens the recording and reads it once, for what depends on other events; on failure, prints
    /// why and returns the exit code.
    pub(super) fn open(&self, mut view: ViewFilter) -> Result<OpenSelection<'_>, ExitCode> {
        let recording = recording(&self.file)?;
        let mut annotations = Annotations::for_filter(self.filter.as_ref());
        let (mut received, mut summary) = ([false; 2], Summary::default());
        for entry in entries(&self.file, &recording) {
            let line = entry?.parsed;
            summary.add(&line);
            annotations.add_line(&line);
            if let Parsed::Event(event) = line {
                view.add(&event);
                if let Some(message) = event.message() {
                    received[message.edge as usize] |= message.is_received();
                }
            }
        }
        if !summary.has_ended() {
            view.set_open();
        }
        annotations.end();
        Ok(OpenSelection {
            selection: self,
            recording,
            view,
            received,
            summary,
            annotations,
        })
    }
}

impl OpenSelection<'_> {
    /// Whether the event matches the filter.
    pub(super) fn matches_filter(&self, event: &RecordedEvent) -> bool {
        let filter = self.selection.filter.as_ref();
        filter.is_none_or(|filter| filter.matches(event, self.annotations.derived(event.n)))
    }

    /// All lines, also those not selected.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<Entry, ExitCode>> + '_ {
        entries(&self.selection.file, &self.recording)
    }

    /// Visits what the recording holds, without the events that the filter excludes, and whether it
    /// is in the view; then reports damaged lines.
    pub(super) fn each(&self, mut visit: impl FnMut(Part<'_>, bool)) -> Result<(), ExitCode> {
        self.each_in_order(|part| match part {
            Part::Event(event) if !self.matches_filter(event) => {}
            Part::Event(event) => {
                let mut message = event.message().into_iter();
                visit(
                    part,
                    message.all(|message| self.view.shows(event.n, message)),
                );
            }
            _ => visit(part, true),
        })
    }

    /// Visits all that the recording holds, its events in the order of the view; then reports
    /// damaged lines.
    pub(super) fn each_in_order(&self, mut visit: impl FnMut(Part<'_>)) -> Result<(), ExitCode> {
        let mut order = self.view.in_order();
        for entry in self.entries() {
            match entry?.parsed {
                Parsed::Header(header) => visit(Part::Header(&header)),
                Parsed::Event(event) => order.push(*event, |event| visit(Part::Event(event))),
                Parsed::Invalid(_) => visit(Part::Damaged),
            }
        }
        order.end(|event| visit(Part::Event(event)));
        let lines = match self.summary.damaged {
            0 => return Ok(()),
            1 => "1 damaged line was".to_owned(),
            more => format!("{more} damaged lines were"),
        };
        note(&format!("acp-relay: {lines} skipped: see `inspect verify`"));
        Ok(())
    }
}

impl Recordings {
    pub(super) fn of((files, filter): FilteredFiles) -> Self {
        Self {
            several: files.len() > 1,
            files,
            filter,
            printed: false,
            failed: None,
            output: Output::new(),
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
        let name = printable(selection.file.to_string_lossy().as_bytes());
        let name = self.output.paint.tone(Tone::Strong, &format!("{name}:"));
        self.output.line(name);
    }

    /// The exit code: that of the first unreadable recording, else `code`.
    pub(super) fn done(self, code: u8) -> ExitCode {
        let done = self.output.done(code);
        self.failed.unwrap_or(done)
    }
}
