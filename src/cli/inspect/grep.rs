//! `acp-relay inspect grep`: finds a text in messages.
//!
//! Strings are searched unescaped, and the chunks of an agent's message as one text.

use std::process::ExitCode;

use clap::Args;
use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use super::chunk_search::ChunkSearch;
use super::hit::Hit;
use super::recordings::Recordings;
use super::select::{Part, Selection};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::recording::{
    EventKind, Payload, RecordedEvent, ViewFilter, find_leaf, show_halves_json,
};

/// The arguments of `inspect grep`.
#[derive(Debug, Args)]
pub(super) struct Grep {
    /// A regular expression
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// Ignore the case of ASCII letters
    #[arg(short, long)]
    ignore_case: bool,
    #[command(flatten)]
    sources: Inputs,
    /// One JSON object a line: file, n, t (seconds), pointer, text; of a match that spans several
    /// chunks also chunks, their number
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Grep) -> Result<ExitCode, ExitCode> {
    let pattern = RegexBuilder::new(&args.pattern)
        .case_insensitive(args.ignore_case)
        .build()
        .map_err(|error| exit::fail(exit::USAGE, &format!("the pattern: {error}")))?;
    let mut code = exit::VIOLATIONS;
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let mut hits = 0_u64;
        let name = selection.file.display().to_string();
        let done = find(selection, &pattern, &mut |hit| {
            if args.json {
                let line = hit.json(&name).to_string();
                to.output.line(show_halves_json(&line).as_bytes());
            } else {
                if hits == 0 {
                    to.head(selection);
                }
                to.output.line(hit.line(to.paint).as_bytes());
            }
            hits += 1;
        });
        if hits > 0 {
            code = exit::SUCCESS;
        }
        done
    });
    Ok(recordings.done(code))
}

/// Reports all matches in a recording.
fn find(
    selection: &Selection,
    pattern: &Regex,
    mut report: &mut dyn FnMut(&Hit<'_>),
) -> Result<(), ExitCode> {
    let chosen = selection.open(ViewFilter::received())?;
    let mut chunks = ChunkSearch::default();
    let done = chosen.each(|part, _| {
        let Part::Event(event) = part else { return };
        chunks.add(event, pattern, &mut report);
        search(event, &mut |pointer, text| {
            if pattern.is_match(text) {
                report(&Hit {
                    n: event.n,
                    t: event.t,
                    pointer,
                    text,
                    chunks: 1,
                });
            }
        });
    });
    chunks.end(pattern, &mut report);
    done
}

/// Passes all texts of an event to `visit`, each with its place.
fn search(event: &RecordedEvent, visit: &mut impl FnMut(&str, &str)) {
    match &event.kind {
        EventKind::Message(message) => match message.body.json() {
            Some(tree) => visit_leaves(&tree, visit),
            None => visit_body(&message.body, visit),
        },
        EventKind::Stderr(body) => visit_body(body, visit),
        EventKind::Gap { .. } | EventKind::End { .. } => {}
        kind => {
            if let Some(text) = kind.text() {
                visit("", text);
            }
        }
    }
}

fn visit_body(body: &Payload, visit: &mut impl FnMut(&str, &str)) {
    if let Some(bytes) = body.bytes() {
        visit("", &String::from_utf8_lossy(bytes));
    }
}

fn visit_leaves(tree: &Value, visit: &mut impl FnMut(&str, &str)) {
    find_leaf(tree, |pointer, leaf| -> Option<()> {
        match leaf {
            Value::String(text) => visit(pointer, text),
            Value::Number(number) => visit(pointer, &number.to_string()),
            _ => {}
        }
        None
    });
}
