//! `acp-relay inspect ls`: the recordings in folders.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::select::{recording, report_unreadable};
use crate::cli::console::{Output, note};
use crate::cli::exit;
use crate::cli::local_time::local_time;
use crate::cli::recordings::{home, is_name};
use crate::cli::text::{Paint, Tone};
use analysis::text::{duration, seconds, size};
use jsonrpc::{Kind, printable};
use recording::rfc3339;
use recording::{Parsed, RecordedEvent, Recording, recordings};

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

/// The summary of a recording.
#[derive(Default, Serialize)]
struct Summary<'r> {
    name: &'r str,
    segments: &'r [PathBuf],
    id: String,
    began: String,
    #[serde(skip)]
    began_micros: u64,
    #[serde(serialize_with = "seconds")]
    lasted: u64,
    client: String,
    agent: String,
    redact: String,
    events: u64,
    turns: u64,
    errors: u64,
    bytes: u64,
    ended: bool,
    damaged: u64,
}

/// Runs the subcommand.
pub(super) fn run(args: &List) -> ExitCode {
    if args.places.is_empty() {
        return match home() {
            Ok(home) if home.is_dir() => list(&[home], args.json),
            Ok(home) => {
                let home = home.display();
                note(&format!(
                    "acp-relay: nothing was recorded into {home}; connect --record does"
                ));
                ExitCode::SUCCESS
            }
            Err(fault) => fault.fail(),
        };
    }
    list(&args.places, args.json)
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
    let paint = Paint::of(&output);
    let lengths = found.iter().map(|recording| recording.name.chars().count());
    let width = lengths.max().unwrap_or(0).clamp(NAMES.start, NAMES.end);
    if !json && !found.is_empty() {
        let began = output.columns().map_or("", |_| BEGAN);
        let heading = format!("{began}{:<width$}{HEADING}", "recording");
        output.line(paint.tone(Tone::Strong, &heading));
    }
    for recording in &found {
        let summary = Summary::of(recording);
        output.line(match json {
            true => json!(summary).to_string(),
            false => {
                let seconds = summary.began_micros / 1_000_000;
                let began = output.columns().map(|_| local_time(seconds) + "  ");
                let line = began.unwrap_or_default() + &summary.line(width);
                paint.line(0, None, &line)
            }
        });
        if !output.is_open() {
            break;
        }
    }
    let done = output.done(exit::SUCCESS);
    failed.unwrap_or(done)
}

impl<'r> Summary<'r> {
    fn of(recording: &'r Recording) -> Self {
        let mut summary = Self {
            name: &recording.name,
            segments: &recording.segments,
            began: rfc3339(0),
            ..Self::default()
        };
        let sizes = recording.segments.iter().map(fs::metadata);
        summary.bytes = sizes.map(|data| data.map_or(0, |data| data.len())).sum();
        for (at, entry) in recording.entries().enumerate() {
            match entry.map(|(_, entry)| entry.parsed) {
                Ok(Parsed::Header(header)) if at == 0 => {
                    summary.id = header.id;
                    summary.began = rfc3339(header.began);
                    summary.began_micros = header.began;
                    summary.client = header.client.name;
                    summary.agent = header.agent.name;
                    summary.redact = header.redaction.mode;
                }
                Ok(Parsed::Header(_)) => {}
                Err(_) | Ok(Parsed::Invalid(_)) => summary.damaged += 1,
                Ok(Parsed::Event(event)) => summary.add(&event),
            }
        }
        summary
    }

    fn add(&mut self, event: &RecordedEvent) {
        self.events += 1;
        self.lasted = event.t;
        self.ended = event.is_end();
        if let Some(message) = event.message()
            && message.is_received()
        {
            let is_prompt = message.kind == Some(Kind::Request)
                && message.method.as_deref() == Some("session/prompt");
            self.turns += u64::from(is_prompt);
            self.errors += u64::from(message.kind == Some(Kind::Error));
        }
    }

    fn line(&self, width: usize) -> String {
        let mut line = format!(
            "{:<width$}{:>9}{:>6}{:>7}{:>8}{:>11}  {}",
            printable(self.name.as_bytes()),
            duration(self.lasted),
            self.turns,
            self.errors,
            self.events,
            size(self.bytes),
            printable(self.agent.as_bytes()),
        );
        if !self.ended {
            line.push_str("  (not ended)");
        }
        if self.damaged > 0 {
            line.push_str("  (damaged: see `inspect verify`)");
        }
        line
    }
}
