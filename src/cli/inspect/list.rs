//! `acp-relay inspect ls`: the recordings in folders.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::select::{recording, report_unreadable};
use super::text::{Paint, Tone, duration, size};
use crate::cli::console::Output;
use crate::cli::exit;
use crate::jsonrpc::{Kind, printable};
use crate::recording::rfc3339;
use crate::recording::{Header, Parsed, Recording, recordings};

/// The arguments of `inspect ls`.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Folders, or recordings
    #[arg(value_name = "DIR", default_value = ".")]
    places: Vec<PathBuf>,
    /// One JSON object a line: name, segments, id, began, lasted (seconds), client, agent, redact,
    /// events, turns, errors, bytes, ended, damaged
    #[arg(long)]
    json: bool,
}

/// The heading of the text output.
const HEADING: &str = "recording                    lasted turns errors  events       size  agent";

/// The summary of a recording.
#[derive(Default)]
struct Summary {
    header: Header,
    events: u64,
    lasted: u64,
    turns: u64,
    errors: u64,
    damaged: u64,
    ended: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &List) -> ExitCode {
    let mut found: Vec<Recording> = Vec::new();
    let mut failed = None;
    for place in &args.places {
        let here = if place.is_file() {
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
    if !args.json && !found.is_empty() {
        output.line(paint.tone(Tone::Strong, HEADING).as_bytes());
    }
    for recording in &found {
        let summary = summarize(recording);
        let bytes = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
        let bytes: u64 = recording.segments.iter().map(bytes).sum();
        if args.json {
            output.line(summary.json(recording, bytes).to_string().as_bytes());
        } else {
            let line = summary.line(recording, bytes);
            output.line(paint.line(0, None, &line).as_bytes());
        }
        if !output.is_open() {
            break;
        }
    }
    let done = output.done(exit::SUCCESS);
    failed.unwrap_or(done)
}

fn summarize(recording: &Recording) -> Summary {
    let mut summary = Summary::default();
    let mut first = true;
    for entry in recording.entries() {
        let Ok((_, entry)) = entry else {
            summary.damaged += 1;
            continue;
        };
        match entry.parsed {
            Parsed::Header(header) if first => summary.header = *header,
            Parsed::Header(_) => {}
            Parsed::Invalid(_) => summary.damaged += 1,
            Parsed::Event(event) => {
                summary.events += 1;
                summary.lasted = event.t;
                summary.ended = event.is_end();
                if let Some(message) = event.message()
                    && message.is_received()
                {
                    let is_prompt = message.kind == Some(Kind::Request)
                        && message.method.as_deref() == Some("session/prompt");
                    summary.turns += u64::from(is_prompt);
                    summary.errors += u64::from(message.kind == Some(Kind::Error));
                }
            }
        }
        first = false;
    }
    summary
}

impl Summary {
    fn json(&self, recording: &Recording, bytes: u64) -> Value {
        json!({
            "name": recording.name,
            "segments": recording.segments,
            "id": self.header.id,
            "began": rfc3339(self.header.began),
            "lasted": self.lasted as f64 / 1e6,
            "client": self.header.client.name,
            "agent": self.header.agent.name,
            "redact": self.header.redaction.mode,
            "events": self.events,
            "turns": self.turns,
            "errors": self.errors,
            "bytes": bytes,
            "ended": self.ended,
            "damaged": self.damaged,
        })
    }

    fn line(&self, recording: &Recording, bytes: u64) -> String {
        let mut line = format!(
            "{:<26}{:>9}{:>6}{:>7}{:>8}{:>11}  {}",
            printable(recording.name.as_bytes()),
            duration(self.lasted),
            self.turns,
            self.errors,
            self.events,
            size(bytes),
            printable(self.header.agent.name.as_bytes()),
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
