//! `acp-relay inspect stats`: `statistics` of conversations. `stats_report` prints them.

use std::process::ExitCode;

use clap::Args;

use super::paint::Paint;
use super::recordings::Recordings;
use super::select::{Part, Selection};
use super::statistics::Statistics;
use super::stats_report;
use crate::cli::console::Output;
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::recording::View;

/// The arguments of `inspect stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    sources: Inputs,
    /// Which messages to count
    #[arg(long, value_enum, default_value = "client")]
    at: View,
    /// One JSON object a file: file, lasted, client, agent (frames, bytes), turns, first_update,
    /// permission (count, p50, p99, max; in seconds), stop_reasons, methods (a list: from, method,
    /// requests, notifications, errors, unanswered, took, bytes), updates, rules, notes, links,
    /// noise, stderr_bytes, missing_events
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> Result<ExitCode, ExitCode> {
    let (files, filter) = args.sources.read()?;
    let mut output = Output::new();
    let paint = Paint::of(&output);
    let mut recordings = Recordings::of(files, filter);
    while let Some(selection) = recordings.next(&mut output) {
        let mut stats = match count(&selection, args.at) {
            Ok(figures) => figures,
            Err(code) => {
                recordings.fail(code);
                continue;
            }
        };
        if args.json {
            let mut value = stats_report::json(&mut stats);
            value["file"] = selection.file.display().to_string().into();
            output.line(value.to_string().as_bytes());
        } else {
            recordings.head(&selection, paint, &mut output);
            output.bytes(stats_report::text(&mut stats, paint).as_bytes());
        }
    }
    Ok(recordings.done(output, exit::SUCCESS))
}

fn count(selection: &Selection, at: View) -> Result<Statistics, ExitCode> {
    let chosen = selection.open(Some(at))?;
    let mut stats = Statistics::of(at);
    chosen.each(|part, in_view| {
        if let Part::Event(event) = part {
            stats.count_rules(event);
            if in_view {
                stats.count(event);
            }
        }
    })?;
    Ok(stats)
}
