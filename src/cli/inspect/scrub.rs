//! `acp-relay inspect scrub`: copies a recording, redacted by the current rules.
//!
//! All segments become one file. Values that were redacted before stay redacted.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rustix::io::Errno;
use serde_json::json;
use tempfile::NamedTempFile;

use super::select::{recording, report_unreadable};
use crate::cli::console::{print, uncreatable};
use crate::cli::exit;
use crate::cli::inputs::{distinct, total_bytes};
use crate::cli::progress::Progress;
use crate::cli::random::random;
use crate::cli::variant::variant_of;
use jsonrpc::{Choice as _, Kind, Limits, is_json};
use recording::redact::{Mode, PointerPattern, RedactFlows, Redactor};
use recording::write;
use recording::{EventKind, Message, PLAIN, Parsed, Payload, RecordedEvent, Recording, Redaction};

/// The arguments of `inspect scrub`.
#[derive(Debug, Args)]
pub(super) struct Scrub {
    /// Recordings; of one in several segments, any of them. The last argument is the copy, which
    /// must not exist yet; or a folder for the copies, which keep the names of their recordings
    #[arg(value_name = "FILE", num_args = 2.., required = true)]
    files: Vec<PathBuf>,
    /// What is redacted
    #[arg(long, value_parser = variant_of::<Mode>(), default_value_t)]
    redact: Mode,
    /// Also redact this place in messages; `*` is any one step
    #[arg(long, value_name = "POINTER")]
    redact_pointer: Vec<PointerPattern>,
    /// Report as JSON: file, events, redacted, mode, rules
    #[arg(long)]
    json: bool,
}

/// The content of a copy.
#[derive(Debug, Default)]
struct CopyResult {
    events: u64,
    /// Messages with redacted parts, now or before.
    redacted: u64,
    /// The redaction in its header.
    redaction: Redaction,
}

/// Runs the subcommand.
pub(super) fn run(args: &Scrub) -> Result<ExitCode, ExitCode> {
    let (to, from) = args.files.split_last().expect("clap requires two");
    let from = distinct(from)?;
    if from.len() > 1 && !to.is_dir() {
        let what = format!("{}: several copies need a folder", to.display());
        return Err(exit::fail(exit::USAGE, &what));
    }
    let _progress = (!args.json).then(|| Progress::start(total_bytes(&from)));
    let mut done = Ok(ExitCode::SUCCESS);
    for from in &from {
        // The first error counts; the others are copied nevertheless.
        let copied = copy(args, from, to);
        done = done.and(copied);
    }
    done
}

/// Copies one recording to a file, or into a folder.
fn copy(args: &Scrub, from: &Path, to: &Path) -> Result<ExitCode, ExitCode> {
    let recording = recording(from)?;
    let to = if to.is_dir() {
        to.join(format!("{}{PLAIN}", recording.name))
    } else {
        to.to_owned()
    };
    let key = random().map_err(|error| exit::fail(exit::SYSTEM, &error))?;
    let redactor = Redactor::new(args.redact, args.redact_pointer.clone(), key);
    let refused = |error| uncreatable(&to, &error);
    if to.symlink_metadata().is_ok() {
        return Err(refused(Errno::EXIST.into()));
    }
    // A partial copy would look like a complete one.
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let part = NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new("."))).map_err(refused)?;
    let copied = scrub(&recording, &redactor, BufWriter::new(part.as_file()))
        .map_err(|error| report_unreadable(from, &error))?;
    let kept = part.persist_noclobber(&to);
    kept.map_err(|error| refused(error.error))?;
    if !args.json {
        return Ok(ExitCode::SUCCESS);
    }
    let report = json!({
        "file": to,
        "events": copied.events,
        "redacted": copied.redacted,
        "mode": copied.redaction.mode,
        "rules": copied.redaction.rules,
    });
    Ok(print(&report.to_string(), exit::SUCCESS))
}

/// The redaction of a copy: includes what was redacted before.
fn merged_redaction(before: &Redaction, redactor: &Redactor) -> Redaction {
    let now = redactor.describe();
    match (redactor.mode(), Mode::from_name(&before.mode).ok()) {
        // Nothing more was redacted.
        (Mode::Full, _) if !before.mode.is_empty() => before.clone(),
        (mode, Some(was)) if mode >= was => now,
        (_, None) if before.mode.is_empty() => now,
        _ => Redaction {
            mode: before.mode.clone(),
            ..now
        },
    }
}

fn scrub(recording: &Recording, redactor: &Redactor, mut to: impl Write) -> io::Result<CopyResult> {
    let mut copied = CopyResult::default();
    let mut digest = blake3::Hasher::new();
    let mut first = true;
    let mut flows = RedactFlows::default();
    for entry in recording.entries() {
        let (_, entry) = entry?;
        let mut line = Vec::new();
        match entry.parsed {
            Parsed::Header(mut header) if first => {
                header.redaction = merged_redaction(&header.redaction, redactor);
                copied.redaction = header.redaction.clone();
                for peer in [&mut header.client, &mut header.agent] {
                    peer.name = redactor.own_text(&peer.name).into_owned();
                }
                write::header(&mut line, &header);
            }
            Parsed::Header(_) => {}
            Parsed::Event(event) => {
                let stamp = event.stamp();
                let ended = digest.finalize().to_hex().to_string();
                let what = redact_event(*event, redactor, &mut flows, ended);
                write::event(&mut line, stamp, &what);
                copied.events += 1;
                let left_out = |message: &Message| !message.redacted.is_empty();
                let is_redacted = matches!(&what, EventKind::Message(message) if left_out(message));
                copied.redacted += u64::from(is_redacted);
            }
            Parsed::Invalid(fault) => {
                let what = format!(
                    "byte {}: {fault}; a damaged line cannot be scrubbed",
                    entry.at
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        first = false;
        digest.update(&line);
        to.write_all(&line)?;
    }
    to.flush()?;
    Ok(copied)
}

fn redact_event(
    event: RecordedEvent,
    redactor: &Redactor,
    flows: &mut RedactFlows,
    ended: String,
) -> EventKind {
    match event
        .kind
        .map_text(|text| redactor.own_text(&text).into_owned())
    {
        EventKind::Message(message) => {
            EventKind::Message(Box::new(redact_message(*message, redactor, flows)))
        }
        EventKind::Stderr(body) => EventKind::Stderr(redactor.payload(&body).0),
        // The copy has one segment.
        EventKind::End {
            rotated: true,
            reason,
            ..
        } => EventKind::Note {
            name: "rotated".to_owned(),
            text: reason,
            source: None,
        },
        EventKind::End {
            rotated, reason, ..
        } => EventKind::End {
            rotated,
            reason,
            digest: ended,
        },
        // Its content is unknown.
        EventKind::Other { kind, .. } => EventKind::Note {
            name: "left_out".to_owned(),
            text: format!("an event of a kind that is not known here: {kind}"),
            source: None,
        },
        other => other,
    }
}

fn redact_message(mut message: Message, redactor: &Redactor, flows: &mut RedactFlows) -> Message {
    let method = message.method.clone().unwrap_or_default();
    if message.kind.is_some_and(Kind::is_answer) {
        let session = message.session.as_deref().map(str::as_bytes);
        flows.answered(method.as_bytes(), session);
    }
    if message.kind == Some(Kind::Request)
        && let Some(text) = message.body.bytes()
    {
        flows.add_request(method.as_bytes(), text);
    }
    let flow = flows.lane(message.edge, message.to);
    let (body, places) = match &message.body {
        Payload::Json(bytes) | Payload::Text(bytes) if is_json(bytes, &Limits::default()) => {
            match redactor.json_streamed(flow, bytes, message.kind, Some(method.as_bytes())) {
                Some(clean) => (Payload::of(clean.text.into()), clean.places),
                None => (message.body.clone(), Vec::new()),
            }
        }
        body => match redactor.payload(body) {
            (clean, true) => (clean, vec![String::new()]),
            (same, false) => (same, Vec::new()),
        },
    };
    if !places.is_empty() {
        // A patch repeats parts of the body.
        message.patch = None;
    }
    if redactor.mode() == Mode::Structure {
        message.session = None;
    }
    for text in [&mut message.id, &mut message.session]
        .into_iter()
        .flatten()
    {
        *text = redactor.own_text(text).into_owned();
    }
    if let Some(method) = &mut message.method {
        *method = redactor.method_name(method).into_owned();
    }
    for place in places {
        if !message.redacted.contains(&place) {
            message.redacted.push(place);
        }
    }
    message.body = match redactor.mode() {
        Mode::Meta => Payload::Omitted(body.len()),
        _ => body,
    };
    message
}
