//! `acp-relay inspect ls`: the recordings in folders.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::select::{recording, report_unreadable};
use crate::cli::console::{Output, note};
use crate::cli::exit;
use crate::cli::local_time::local_time;
use crate::cli::recordings::{home, is_name};
use crate::cli::text::Tone;
use analysis::text::{duration, size};
use jsonrpc::printable;
use recording::{Header, Recording, Summary, recordings, rfc3339};

/// The arguments of `inspect ls`.
#[derive(Debug, Default, Args)]
pub(super) struct List {
    /// Folders, or recordings; without any, the folder that `--record` without a value records into
    #[arg(value_name = "DIR")]
    places: Vec<PathBuf>,
    /// One JSON object a line: name, segments, id, began, lasted (seconds), client, agent, redact,
    /// events, turns, errors, bytes, ended, damaged
    #[arg(long)]
    json: bool,
}

/// The heading of the text output; at a terminal, the local time is before it.
const BEGAN: &str = "began                ";
const HEADING: &str = "   lasted turns errors  events       size  agent";

/// The width of the column of names, and the most that it grows to for longer ones.
const NAMES: std::ops::Range<usize> = 26..72;

/// Runs the subcommand.
pub(super) fn run(args: &List) -> Result<ExitCode, ExitCode> {
    if !args.places.is_empty() {
        return Ok(list(&args.places, args.json));
    }
    let home = home().map_err(|fault| fault.fail())?;
    if home.is_dir() {
        return Ok(list(&[home], args.json));
    }
    let home = home.display();
    note(&format!(
        "acp-relay: nothing was recorded into {home}; connect --record does"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Lists what is at these places.
fn list(places: &[PathBuf], json: bool) -> ExitCode {
    let mut found: Vec<Recording> = Vec::new();
    let mut failed = None;
    for place in places {
        let here = if !place.is_dir() && (place.is_file() || is_name(place)) {
            recording(place).map(|recording| vec![recording])
        } else {
            recordings(place).map_err(|error| report_unreadable(place, &error))
        };
        match here {
            Ok(here) => found.extend(here),
            Err(code) => {
                failed.get_or_insert(code);
            }
        }
    }
    // Several segments of one recording may have been named.
    let mut seen = HashSet::new();
    found.retain(|recording| seen.insert(recording.segments.clone()));
    let mut output = Output::new();
    let lengths = found.iter().map(|recording| recording.name.chars().count());
    let width = lengths.max().unwrap_or(0).clamp(NAMES.start, NAMES.end);
    if !json && !found.is_empty() {
        let began = output.columns().map_or("", |_| BEGAN);
        let heading = format!("{began}{:<width$}{HEADING}", "recording");
        output.line(output.paint.tone(Tone::Strong, &heading));
    }
    for recording in &found {
        let (header, summary) = read(recording);
        output.line(match json {
            true => as_json(recording, &header, &summary).to_string(),
            false => {
                let seconds = header.began / 1_000_000;
                let began = output.columns().map(|_| local_time(seconds) + "  ");
                let row = row(recording, &header, &summary, width);
                let line = began.unwrap_or_default() + &row;
                output.paint.line(0, None, &line)
            }
        });
        if !output.is_open() {
            break;
        }
    }
    let done = output.done(exit::SUCCESS);
    failed.unwrap_or(done)
}

/// The first header of a recording, and its totals.
fn read(recording: &Recording) -> (Header, Summary) {
    let mut summary = Summary::default();
    for entry in recording.entries() {
        match entry {
            Ok((_, entry)) => summary.add(&entry.parsed),
            Err(_) => summary.damaged += 1,
        }
    }
    (summary.header.take().unwrap_or_default(), summary)
}

fn as_json(recording: &Recording, header: &Header, summary: &Summary) -> Value {
    json!({
        "name": recording.name,
        "segments": recording.segments,
        "id": header.id,
        "began": rfc3339(header.began),
        "lasted": summary.lasted as f64 / 1e6,
        "client": header.client.name,
        "agent": header.agent.name,
        "redact": header.redaction.mode,
        "events": summary.events,
        "turns": summary.turns,
        "errors": summary.received_errors,
        "bytes": recording.bytes(),
        "ended": summary.has_ended(),
        "damaged": summary.damaged,
    })
}

fn row(recording: &Recording, header: &Header, summary: &Summary, width: usize) -> String {
    let mut line = format!(
        "{:<width$}{:>9}{:>6}{:>7}{:>8}{:>11}  {}",
        printable(recording.name.as_bytes()),
        duration(summary.lasted),
        summary.turns,
        summary.received_errors,
        summary.events,
        size(recording.bytes()),
        printable(header.agent.name.as_bytes()),
    );
    if !summary.has_ended() {
        line.push_str("  (not ended)");
    }
    if summary.damaged > 0 {
        line.push_str("  (damaged: see `inspect verify`)");
    }
    line
}
