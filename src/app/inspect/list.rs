//! `acp-relay inspect ls`: the recordings in a folder.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::command::unreadable;
use super::units::{size, took};
use crate::app::console::Output;
use crate::app::exit;
use crate::recording::write::calendar;
use crate::recording::{Entry, Found, Header, MessageKind, Recording, What, segments};
use crate::wire::printable;

/// What `inspect ls` is asked for.
#[derive(Debug, Args)]
pub(super) struct List {
    /// The folder
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// A recording at a glance.
#[derive(Default)]
struct Glance {
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
    let found = match segments(&args.folder) {
        Ok(found) => found,
        Err(error) => return unreadable(&args.folder, &error),
    };
    let mut output = Output::new();
    for recording in &found {
        let glance = glance(recording);
        let bytes = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
        let bytes: u64 = recording.segments.iter().map(bytes).sum();
        if args.json {
            output.line(glance.json(recording, bytes).to_string().as_bytes());
        } else {
            output.line(glance.line(recording, bytes).as_bytes());
        }
        if !output.is_open() {
            break;
        }
    }
    output.done(exit::SUCCESS)
}

fn glance(recording: &Recording) -> Glance {
    let mut glance = Glance::default();
    let mut first = true;
    for entry in recording.entries() {
        let Ok((_, Entry { found, .. })) = entry else {
            glance.damaged += 1;
            continue;
        };
        match found {
            Found::Header(header) if first => glance.header = *header,
            Found::Header(_) => {}
            Found::Broken(_) => glance.damaged += 1,
            Found::Event(event) => {
                glance.events += 1;
                glance.lasted = event.t;
                glance.ended = matches!(event.what, What::End { rotated: false, .. });
                if let What::Message(message) = event.what
                    && message.is_heard()
                {
                    let asked = message.kind == Some(MessageKind::Request)
                        && message.method.as_deref() == Some("session/prompt");
                    glance.turns += u64::from(asked);
                    glance.errors += u64::from(message.kind == Some(MessageKind::Error));
                }
            }
        }
        first = false;
    }
    glance
}

impl Glance {
    fn json(&self, recording: &Recording, bytes: u64) -> Value {
        json!({
            "name": recording.name,
            "segments": recording.segments,
            "id": self.header.id,
            "began": calendar(self.header.began),
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
            "{:<28} {:>10} {:>7} events {:>4} turns {:>4} errors {:>10}  {}",
            printable(recording.name.as_bytes()),
            took(self.lasted),
            self.events,
            self.turns,
            self.errors,
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
