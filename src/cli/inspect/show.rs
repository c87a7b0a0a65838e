//! `acp-relay inspect show`: a conversation, line by line.

use std::process::ExitCode;

use clap::Args;

use super::open::report_unreadable;
use super::printer::{Printer, Style};
use super::select::{OpenSelection, Selection};
use crate::cli::console::note;
use crate::cli::exit;
use crate::recording::{Parsed, RecordedEvent, ViewFilter};

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
    let opened = args.selection.open(ViewFilter::both())?;
    let known = opened.annotations.exchanges().clone();
    let mut printer = Printer::new(args.style, true, known);
    let mut code = exit::SUCCESS;
    let mut any_selected = args.selection.filter.is_none();
    let mut order = opened.view.in_order();
    for entry in opened.entries() {
        let unreadable = |error| report_unreadable(&args.selection.file, &error);
        let (_, entry) = entry.map_err(unreadable)?;
        match entry.parsed {
            Parsed::Event(event) if !args.style.json => {
                order.push(*event, |event| {
                    any_selected |= show(&opened, event, &mut printer)
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
    order.end(|event| any_selected |= show(&opened, event, &mut printer));
    printer.end_run();
    printer.output.flush();
    if !args.style.json && printer.output.is_open() {
        if !any_selected {
            note("acp-relay: no event matches the filter");
        }
        match opened.rotated {
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
