//! `acp-relay inspect grep`: finds a text in messages.

use std::process::ExitCode;

use clap::Args;
use regex_lite::{Regex, RegexBuilder};
use serde_json::json;

use super::select::{Part, Recordings, Selection};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::cli::text::Paint;
use analysis::search::{Hit, TextSearch};
use analysis::text::{excerpt, timestamp};
use recording::{ViewFilter, show_halves_json};

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
        let mut first = true;
        find(selection, &pattern, &mut |hit| {
            code = exit::SUCCESS;
            if args.json {
                to.output.line(&*show_halves_json(&json!(hit).to_string()));
                return;
            }
            if std::mem::take(&mut first) {
                to.head(selection);
            }
            to.output.line(line(hit, to.output.paint));
        })
    });
    Ok(recordings.done(code))
}

/// Reports all matches in a recording.
fn find(
    selection: &Selection,
    pattern: &Regex,
    report: &mut impl FnMut(&Hit<'_>),
) -> Result<(), ExitCode> {
    let opened = selection.open(ViewFilter::default())?;
    let file = selection.file.display().to_string();
    let mut search = TextSearch::new(&file, pattern);
    let done = opened.each(|part, _| {
        if let Part::Event(event) = part {
            search.event(event, report);
        }
    });
    search.end(report);
    done
}

/// A match in a line.
fn line(hit: &Hit<'_>, paint: Paint) -> String {
    let (n, at) = (hit.n, timestamp(hit.t));
    let pointer = excerpt(hit.pointer.as_bytes());
    let chunks = hit
        .chunks
        .map(|count| format!(" ×{count}"))
        .unwrap_or_default();
    let text = excerpt(hit.text.as_bytes());
    let line = format!("{n:>6} {at:>12} {pointer}{chunks}: {text}");
    paint.line(20 + pointer.chars().count(), None, &line)
}
