//! Selects a recording, its events and a point of view for a subcommand.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::open::{recording, report_unreadable};
use crate::cli::console::note;
use crate::jsonrpc::Side;
use crate::recording::filter::{Field, Filter};
use crate::recording::{
    Annotations, Entry, EventKind, Header, Parsed, RecordedEvent, Recording, View, ViewFilter,
};

/// A recording and a filter of its events.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE")]
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
    /// If the last event is an end, whether the recording continues in another file.
    pub(super) rotated: Option<bool>,
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

/// One line for each field of the language, for `--help`.
pub(super) fn help() -> String {
    let mut text = String::from("Filters join terms with and, or, not and parentheses:\n");
    for field in Field::all() {
        let (example, what) = field.description();
        text += &format!("  {example:<20} {what}\n");
    }
    text.trim_end().to_owned()
}

impl ValueEnum for View {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Received,
            Self::At(Side::Client),
            Self::At(Side::Agent),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Received => (
                "received",
                "What the relay received from both sides, before translation",
            ),
            Self::At(Side::Client) => ("client", "What the client sent and received"),
            Self::At(Side::Agent) => ("agent", "What the agent sent and received"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

impl Selection {
    /// Opens the recording and reads it once, for what depends on other events; on failure, prints
    /// why and returns the exit code.
    pub(super) fn open(&self, mut view: ViewFilter) -> Result<OpenSelection<'_>, ExitCode> {
        let recording = recording(&self.file)?;
        let mut annotations = Annotations::for_filter(self.filter.as_ref());
        let (mut received, mut rotated) = ([false; 2], None);
        for entry in recording.entries() {
            let (_, entry) = entry.map_err(|error| report_unreadable(&self.file, &error))?;
            match entry.parsed {
                Parsed::Event(event) => {
                    rotated = match event.kind {
                        EventKind::End { rotated, .. } => Some(rotated),
                        _ => None,
                    };
                    view.add(&event);
                    annotations.add(&event);
                    if let Some(message) = event.message() {
                        received[message.edge as usize] |= message.is_received();
                    }
                }
                Parsed::Header(header) => annotations.begin(&header),
                Parsed::Invalid(_) => {}
            }
        }
        if rotated != Some(false) {
            view.set_open();
        }
        annotations.end();
        Ok(OpenSelection {
            selection: self,
            recording,
            view,
            received,
            rotated,
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
    pub(super) fn entries(&self) -> impl Iterator<Item = std::io::Result<(usize, Entry)>> + '_ {
        self.recording.entries()
    }

    /// Visits what the recording holds, without the events that the filter excludes, and whether it
    /// is in the view; then reports damaged lines.
    pub(super) fn each(&self, mut visit: impl FnMut(Part<'_>, bool)) -> Result<(), ExitCode> {
        self.each_in_order(|part| match part {
            Part::Event(event) if !self.matches_filter(event) => {}
            Part::Event(event) => {
                let message = event.message();
                visit(
                    part,
                    message.is_none_or(|message| self.view.shows(event.n, message)),
                );
            }
            _ => visit(part, true),
        })
    }

    /// Visits all that the recording holds, its events in the order of the view; then reports
    /// damaged lines.
    pub(super) fn each_in_order(&self, mut visit: impl FnMut(Part<'_>)) -> Result<(), ExitCode> {
        let mut damaged = 0;
        let mut order = self.view.in_order();
        for entry in self.recording.entries() {
            let unreadable = |error| report_unreadable(&self.selection.file, &error);
            match entry.map_err(unreadable)?.1.parsed {
                Parsed::Header(header) => visit(Part::Header(&header)),
                Parsed::Event(event) => order.push(*event, |event| visit(Part::Event(event))),
                Parsed::Invalid(_) => {
                    damaged += 1;
                    visit(Part::Damaged);
                }
            }
        }
        order.end(|event| visit(Part::Event(event)));
        let lines = match damaged {
            0 => return Ok(()),
            1 => "1 damaged line was".to_owned(),
            more => format!("{more} damaged lines were"),
        };
        note(&format!("acp-relay: {lines} skipped: see `inspect verify`"));
        Ok(())
    }
}
