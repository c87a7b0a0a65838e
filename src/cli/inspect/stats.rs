//! `acp-relay inspect stats`: `statistics` of conversations. `stats_report` prints them.

use std::process::ExitCode;

use clap::Args;

use super::recordings::Recordings;
use super::select::{Part, Selection};
use super::statistics::Statistics;
use super::stats_report;
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
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let mut stats = count(selection, args.at)?;
        if args.json {
            let mut value = stats_report::json(&mut stats);
            value["file"] = selection.file.display().to_string().into();
            to.output.line(value.to_string().as_bytes());
        } else {
            to.head(selection);
            let text = stats_report::text(&mut stats, to.paint);
            to.output.bytes(text.as_bytes());
        }
        Ok(())
    });
    Ok(recordings.done(exit::SUCCESS))
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
