//! `acp-relay inspect show`: a conversation, line by line.

use std::process::ExitCode;

use clap::Args;

use super::command::unreadable;
use super::page::{Page, Style};
use super::select::{Chosen, Selection};
use crate::cli::console::remark;
use crate::cli::exit;
use crate::jsonrpc::printable;
use crate::recording::{Conversation, Event, Found, Scene, What};

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
pub(super) fn run(args: &Show) -> ExitCode {
    let chosen = match args.selection.open(None) {
        Ok(chosen) => chosen,
        Err(code) => return code,
    };
    let (known, scene) = match exchanges(&chosen) {
        Ok(known) => known,
        Err(error) => return unreadable(&args.selection.file, &error),
    };
    let style = Style {
        all: args.all,
        bodies: args.bodies,
        json: args.json,
        whole: true,
    };
    let mut page = Page::new(style, known);
    let mut code = exit::SUCCESS;
    let (mut has_ended, mut rotated) = (false, false);
    let mut picked = args.selection.filter.is_none();
    let mut order = scene.in_order();
    for entry in chosen.entries() {
        if let Ok((_, entry)) = &entry
            && let Found::Event(event) = &entry.found
        {
            has_ended = matches!(event.what, What::End { rotated: false, .. });
            rotated = matches!(event.what, What::End { rotated: true, .. });
        }
        let fault = match entry {
            Ok((_, entry)) if !args.json && matches!(entry.found, Found::Event(_)) => {
                if let Found::Event(event) = entry.found {
                    order.take(*event, |event| picked |= show(&chosen, event, &mut page));
                }
                None
            }
            Ok((_, entry)) => match &entry.found {
                Found::Event(event) if !chosen.picks(event) => {
                    page.pass_over(event);
                    None
                }
                Found::Event(_) => {
                    picked = true;
                    page.entry(entry)
                }
                _ => page.entry(entry),
            },
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            code = exit::DEVIATES;
            page.end_run();
            page.output.flush();
            remark(&format!("acp-relay: {}", printable(fault.as_bytes())));
        }
        if !page.output.is_open() {
            break;
        }
    }
    order.end(|event| picked |= show(&chosen, event, &mut page));
    page.end_run();
    if !picked && !args.json && page.output.is_open() {
        page.output.flush();
        remark("acp-relay: no event matches the filter");
    }
    if !has_ended && !args.json && page.output.is_open() {
        page.output.flush();
        remark(match rotated {
            true => "acp-relay: the recording continues in a file that does not exist (yet)",
            false => "acp-relay: the recording has no end: it is being written, or was cut off",
        });
    }
    page.output.done(code)
}

/// Prints an event if it is selected. Returns whether it is.
fn show(chosen: &Chosen<'_>, event: &Event, page: &mut Page) -> bool {
    let picked = chosen.picks(event);
    if picked {
        page.event(event);
    } else {
        page.pass_over(event);
    }
    picked
}

/// The exchanges, so that a request can be printed with its answer, and the order in which each
/// side received its messages.
fn exchanges(chosen: &Chosen<'_>) -> std::io::Result<(Conversation, Scene)> {
    let (mut known, mut scene) = (Conversation::default(), Scene::both());
    for entry in chosen.entries() {
        if let Found::Event(event) = entry?.1.found {
            known.see(&event);
            scene.see(&event);
        }
    }
    Ok((known, scene))
}
