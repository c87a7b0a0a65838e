//! `acp-relay inspect follow`: shows a conversation while it is being recorded.
//!
//! It continues in the next segment, and ends with the recording.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::open::{open_unchecked, recording, report_unreadable};
use super::printer::{Printer, Style};
use super::select::Selection;
use crate::cli::exit;
use crate::recording::filter::Filter;
use crate::recording::{
    Annotations, Entry, Exchanges, Parsed, RecordedEvent, Recording, Tail, recordings,
};

/// Time between two polls of a file that has not grown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Polls without a new line after which a run of chunks is shown, although it may continue.
const IDLE_POLLS: u32 = 10;

/// The arguments of `inspect follow`.
#[derive(Debug, Args)]
pub(super) struct Follow {
    #[command(flatten)]
    selection: Selection,
    /// Begin this many events before the current end
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    last: usize,
    #[command(flatten)]
    style: Style,
}

/// Runs the subcommand.
pub(super) fn run(args: &Follow) -> Result<ExitCode, ExitCode> {
    let file = &args.selection.file;
    let path = newest(file).map_err(|error| report_unreadable(file, &error))?;
    // A recording that has just begun may still be empty.
    let is_empty = std::fs::metadata(&path).is_ok_and(|data| data.len() == 0);
    let recording = if is_empty {
        open_unchecked(&path)?
    } else {
        recording(&path)?
    };
    let mut known = Exchanges::default();
    // An error is reported later, when the entry is read to be shown.
    for event in recording.events().map_while(Result::ok) {
        known.add(&event);
    }
    let mut printer = Printer::new(args.style, false, known);
    follow(args, recording, &mut printer).map_err(|error| report_unreadable(&path, &error))?;
    printer.end_run();
    Ok(printer.output.done(exit::SUCCESS))
}

/// The file, or the latest recording in a folder.
fn newest(path: &Path) -> io::Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let last = recordings(path)?
        .pop()
        .and_then(|mut last| last.segments.pop());
    last.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the folder has no recording yet"))
}

fn follow(args: &Follow, recording: Recording, printer: &mut Printer) -> io::Result<()> {
    let filter = args.selection.filter.as_ref();
    let mut annotations = Annotations::for_filter(filter);
    let mut tail = Tail::open(recording)?;
    // The last lines of those already recorded; `None` once they have been shown.
    let mut backlog = Some(VecDeque::new());
    let mut idle = 0;
    while printer.output.is_open() {
        let Some(entry) = tail.next_entry()? else {
            for entry in backlog.take().into_iter().flatten() {
                printer.entry(entry);
            }
            if tail.has_ended() {
                return Ok(());
            }
            idle += 1;
            if idle == IDLE_POLLS {
                printer.end_run();
            }
            printer.output.flush();
            std::thread::sleep(POLL_INTERVAL);
            continue;
        };
        idle = 0;
        if let Parsed::Header(header) = &entry.parsed {
            annotations.begin(header);
        }
        if let Parsed::Event(event) = &entry.parsed
            && !is_match(filter, event, &printer.exchanges, &mut annotations)
        {
            printer.exchanges.add(event);
            continue;
        }
        let Some(recent) = &mut backlog else {
            printer.entry(entry);
            continue;
        };
        recent.push_back(entry);
        if recent.len() > args.last
            && let Some(Entry {
                parsed: Parsed::Event(event),
                ..
            }) = recent.pop_front()
        {
            printer.exchanges.add(&event);
        }
    }
    Ok(())
}

/// Whether an event matches, as far as is known now.
fn is_match(
    filter: Option<&Filter>,
    event: &RecordedEvent,
    known: &Exchanges,
    annotations: &mut Annotations,
) -> bool {
    let Some(filter) = filter else {
        return true;
    };
    annotations.add(event);
    let mut facts = annotations.derived(event.n);
    facts.duration = facts.duration.or_else(|| known.duration(event.n));
    filter.matches(event, facts)
}
