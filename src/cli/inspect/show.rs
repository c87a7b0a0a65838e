//! `acp-relay inspect show`: a conversation, line by line.

use std::process::ExitCode;

use clap::Args;

use super::open::report_unreadable;
use super::printer::{Printer, Style};
use super::select::{OpenSelection, Selection};
use crate::cli::console::note;
use crate::cli::exit;
use crate::jsonrpc::printable;
use crate::recording::{EventKind, Exchanges, Parsed, RecordedEvent, ViewFilter};

/// The arguments of `inspect show`.
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    selection: Selection,
    /// Show every event separately, also the notes that a frame was forwarded
    #[arg(long)]
    all: bool,
    /// Show whole message bodies
    #[arg(long)]
    bodies: bool,
    /// Print the lines of the recording, each answer with its duration
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Show) -> Result<ExitCode, ExitCode> {
    let opened = args.selection.open(None)?;
    let (known, scene) =
        exchanges(&opened).map_err(|error| report_unreadable(&args.selection.file, &error))?;
    let style = Style {
        all: args.all,
        bodies: args.bodies,
        json: args.json,
        complete: true,
    };
    let mut printer = Printer::new(style, known);
    let mut code = exit::SUCCESS;
    let (mut has_ended, mut rotated) = (false, false);
    let mut any_selected = args.selection.filter.is_none();
    let mut order = scene.in_order();
    for entry in opened.entries() {
        if let Ok((_, entry)) = &entry
            && let Some(event) = entry.parsed.event()
        {
            has_ended = event.is_end();
            rotated = matches!(event.kind, EventKind::End { rotated: true, .. });
        }
        let fault = match entry {
            Ok((_, entry)) if !args.json && matches!(entry.parsed, Parsed::Event(_)) => {
                if let Parsed::Event(event) = entry.parsed {
                    order.push(*event, |event| {
                        any_selected |= show(&opened, event, &mut printer)
                    });
                }
                None
            }
            Ok((_, entry)) => match &entry.parsed {
                Parsed::Event(event) if !opened.is_selected(event) => {
                    printer.skip(event);
                    None
                }
                Parsed::Event(_) => {
                    any_selected = true;
                    printer.entry(entry)
                }
                _ => printer.entry(entry),
            },
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            code = exit::VIOLATIONS;
            printer.end_run();
            printer.output.flush();
            note(&format!("acp-relay: {}", printable(fault.as_bytes())));
        }
        if !printer.output.is_open() {
            break;
        }
    }
    order.end(|event| any_selected |= show(&opened, event, &mut printer));
    printer.end_run();
    if !any_selected && !args.json && printer.output.is_open() {
        printer.output.flush();
        note("acp-relay: no event matches the filter");
    }
    if !has_ended && !args.json && printer.output.is_open() {
        printer.output.flush();
        note(match rotated {
            true => "acp-relay: the recording continues in a file that does not exist (yet)",
            false => "acp-relay: the recording has no end: it is being written, or was cut off",
        });
    }
    Ok(printer.output.done(code))
}

/// Prints an event if it is selected. Returns whether it is.
fn show(opened: &OpenSelection<'_>, event: &RecordedEvent, printer: &mut Printer) -> bool {
    let selected = opened.is_selected(event);
    if selected {
        printer.event(event);
    } else {
        printer.skip(event);
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
