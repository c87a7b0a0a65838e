//! `acp-relay inspect show`: a conversation, line by line.

use std::process::ExitCode;

use clap::Args;

use super::open::report_unreadable;
use super::printer::{Printer, Style};
use super::select::{OpenSelection, Selection};
use crate::cli::console::note;
use crate::cli::exit;
use crate::recording::{Entry, EventKind, Exchanges, Parsed, RecordedEvent, View, ViewFilter};

/// The arguments of `inspect show`.
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    style: Style,
}

/// Runs the subcommand.
pub(super) fn run(args: &Show) -> Result<ExitCode, ExitCode> {
    let opened = args.selection.open(View::default())?;
    let (known, scene) =
        exchanges(&opened).map_err(|error| report_unreadable(&args.selection.file, &error))?;
    let mut printer = Printer::new(args.style, true, known);
    let mut code = exit::SUCCESS;
    // Of the last event, if it is an end: whether the recording continues in another file.
    let mut end = None;
    let mut any_selected = args.selection.filter.is_none();
    let mut order = scene.in_order();
    for entry in opened.entries() {
        if let Ok((_, entry)) = &entry
            && let Some(event) = entry.parsed.event()
        {
            end = match event.kind {
                EventKind::End { rotated, .. } => Some(rotated),
                _ => None,
            };
        }
        match entry.map(|(_, entry)| entry) {
            Ok(Entry {
                parsed: Parsed::Event(event),
                ..
            }) if !args.style.json => {
                order.push(*event, |event| {
                    any_selected |= show(&opened, event, &mut printer)
                });
            }
            Ok(entry) => {
                if matches!(entry.parsed, Parsed::Invalid(_)) {
                    code = exit::VIOLATIONS;
                }
                if entry
                    .parsed
                    .event()
                    .is_none_or(|event| opened.matches_filter(event))
                {
                    printer.entry(entry);
                }
            }
            Err(error) => {
                code = exit::VIOLATIONS;
                printer.report(&error.to_string());
            }
        }
        if !printer.output.is_open() {
            break;
        }
    }
    order.end(|event| any_selected |= show(&opened, event, &mut printer));
    printer.end_run();
    printer.output.flush();
    if !args.style.json && printer.output.is_open() {
        if !any_selected {
            note("acp-relay: no event matches the filter");
        }
        match end {
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
fn show(opened: &OpenSelection<'_>, event: &RecordedEvent, printer: &mut Printer) -> bool {
    let selected = opened.matches_filter(event);
    if selected {
        printer.event(event);
    }
    selected
}

/// The exchanges, so that a request can be printed with its answer, and the order in which each
/// side received its messages.
fn exchanges(opened: &OpenSelection<'_>) -> std::io::Result<(Exchanges, ViewFilter)> {
    let (mut known, mut scene) = (Exchanges::default(), ViewFilter::both());
    for entry in opened.entries() {
        if let Some(event) = entry?.1.parsed.event() {
            known.add(event);
            scene.add(event);
        }
    }
    Ok((known, scene))
}
