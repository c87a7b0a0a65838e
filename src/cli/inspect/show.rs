//! `acp-relay inspect show` and `inspect follow`: a conversation, line by line; `follow` does so
//! while it is recorded, continues in the next segment, and ends with the recording.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::printer::{Printer, Style};
use super::select::{OpenSelection, Selection, open_unchecked, recording, report_unreadable};
use crate::cli::console::note;
use crate::cli::exit;
use crate::cli::recordings::locate;
use analysis::Annotations;
use recording::{Entry, Exchanges, Parsed, RecordedEvent, Recording, Tail, ViewFilter, recordings};

/// Time between two polls of a file that has not grown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Polls without a new line after which a run of chunks is shown, although it may continue.
const IDLE_POLLS: u32 = 10;

/// The arguments of `inspect show`.
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    style: Style,
}

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

/// Runs `inspect show`.
pub(super) fn show(args: &Show) -> Result<ExitCode, ExitCode> {
    let opened = args.selection.open(ViewFilter::both())?;
    let known = opened.annotations.exchanges().clone();
    let mut printer = Printer::new(args.style, true, known);
    let mut code = exit::SUCCESS;
    let mut any_selected = args.selection.filter.is_none();
    let mut order = opened.view.in_order();
    for entry in opened.entries() {
        let entry = entry?;
        match entry.parsed {
            Parsed::Event(event) if !args.style.json => {
                order.push(*event, |event| {
                    any_selected |= show_selected(&opened, event, &mut printer);
                });
            }
            Parsed::Event(ref event) if !opened.matches_filter(event) => {}
            Parsed::Invalid(_) => {
                code = exit::VIOLATIONS;
                printer.entry(entry);
            }
            _ => printer.entry(entry),
        }
        if !printer.output.is_open() {
            break;
        }
    }
    order.end(|event| any_selected |= show_selected(&opened, event, &mut printer));
    printer.end_run();
    printer.output.flush();
    if !args.style.json && printer.output.is_open() {
        if !any_selected {
            note("acp-relay: no event matches the filter");
        }
        match opened.summary.rotated {
            Some(false) => {}
            Some(true) => {
                note("acp-relay: the recording continues in a file that does not exist (yet)");
            }
            None => {
                note("acp-relay: the recording has no end: it is being written, or was cut off");
            }
        }
    }
    Ok(printer.output.done(code))
}

/// Prints an event if it is selected. Returns whether it is.
fn show_selected(opened: &OpenSelection<'_>, event: &RecordedEvent, printer: &mut Printer) -> bool {
    let selected = opened.matches_filter(event);
    if selected {
        printer.event(event);
    }
    selected
}

/// Runs `inspect follow`.
pub(super) fn follow(args: &Follow) -> Result<ExitCode, ExitCode> {
    let file = &locate(&args.selection.file)?;
    let path = newest(file).map_err(|error| report_unreadable(file, &error))?;
    // A recording that has just begun may still be empty.
    let is_empty = std::fs::metadata(&path).is_ok_and(|data| data.len() == 0);
    let open = if is_empty { open_unchecked } else { recording };
    let recording = open(&path)?;
    let mut known = Exchanges::default();
    // An error is reported later, when the entry is read to be shown.
    for event in recording.events().map_while(Result::ok) {
        known.add(&event);
    }
    let mut printer = Printer::new(args.style, false, known);
    let followed = print_growing(args, recording, &mut printer);
    followed.map_err(|error| report_unreadable(&path, &error))?;
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

fn print_growing(args: &Follow, recording: Recording, printer: &mut Printer) -> io::Result<()> {
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
        if let Some(filter) = filter {
            annotations.add_line(&entry.parsed);
            if let Parsed::Event(event) = &entry.parsed {
                let mut facts = annotations.derived(event.n);
                let known = || printer.exchanges.duration(event.n);
                facts.duration = facts.duration.or_else(known);
                if !filter.matches(event, facts) {
                    printer.exchanges.add(event);
                    continue;
                }
            }
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
