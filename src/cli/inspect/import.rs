//! `acp-relay inspect import`: makes recordings from captures of other programs.
//!
//! `analysis::import` reads a file; its messages become events.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;

use super::select::report_unreadable;
use crate::cli::console::{self, print, uncreatable};
use crate::cli::exit;
use crate::cli::progress::{self, Counted, Progress};
use crate::cli::random::{random, random_hex};
use crate::cli::variant::variant_of;
use analysis::import::{Capture, read};
use observe::recorder::{EventEncoder, create};
use recording::redact::{Mode, PointerPattern, Redactor};
use recording::{EventKind, Header, Passed, PeerInfo, VERSION, unix_micros, write};

/// The arguments of `inspect import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// A file, or `-` for stdin: a trace of the official conductor (.jsons), an export of
    /// acp-devtools, a HAR file, text copied from Zed's ACP log, a capture
    /// ({"dir":"c2a","ts":0.1,"msg":{…}}) or bare messages: one a line, pretty-printed, in an
    /// array, or with Content-Length headers; in UTF-8 or UTF-16
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// The recording, such as name.acpr, which must not exist yet
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// What is redacted
    #[arg(long, value_parser = variant_of::<Mode>(), default_value_t)]
    redact: Mode,
    /// Also redact this place in messages; `*` is any one step
    #[arg(long, value_name = "POINTER")]
    redact_pointer: Vec<PointerPattern>,
    /// Report as JSON: form, events, left_out, guessed, odd (lines that are no message)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Import) -> Result<ExitCode, ExitCode> {
    let from: io::Result<Box<dyn Read>> = match args.from.as_os_str() == "-" {
        true => Ok(Box::new(console::input())),
        false => File::open(&args.from).map(|file| Box::new(file) as _),
    };
    let text = from.and_then(|from| {
        let _progress = (!args.json).then(|| Progress::start(0));
        let mut text = Vec::new();
        Counted(from).read_to_end(&mut text).map(|_| text)
    });
    let text = text.map_err(|error| report_unreadable(&args.from, &error))?;
    // The messages are first found, and then redacted and written.
    let length = text.len() as u64;
    let _progress = (!args.json).then(|| Progress::start(2 * length));
    let changed = fs::metadata(&args.from).and_then(|data| data.modified());
    let redactor = redactor(args.redact, args.redact_pointer.clone());
    let redactor = redactor.map_err(|error| exit::fail(exit::SYSTEM, &error))?;
    let (capture, lines, events) = import(&text, changed.ok(), args.redact, redactor)
        .map_err(|why| exit::fail(exit::DATA, &format!("{}: {why}", args.from.display())))?;
    let done = create(&args.to).and_then(|mut file| file.write_all(&lines));
    done.map_err(|error| uncreatable(&args.to, &error))?;
    let (form, left_out, guessed) = (capture.format, capture.left_out, capture.guessed);
    if args.json {
        let done = json!({
            "form": form,
            "events": events,
            "left_out": left_out,
            "guessed": guessed,
            "odd": capture.odd,
        });
        return Ok(print(&done.to_string(), exit::SUCCESS));
    }
    let mut text = format!("{form}: {events} events");
    if left_out > 0 {
        text += &format!("; {left_out} lines that are no ACP message were left out");
    }
    if guessed > 0 {
        text += &format!("; the sender of {guessed} messages is a guess");
    }
    if capture.odd > 0 {
        text += &format!("; {} of them are no messages", capture.odd);
    }
    Ok(print(&text, exit::SUCCESS))
}

/// The recording that a capture is imported to without options; or why it is none.
pub(in crate::cli) fn of_capture(text: &[u8], changed: SystemTime) -> Result<Vec<u8>, String> {
    let mode = Mode::default();
    let redactor = redactor(mode, Vec::new()).map_err(|error| error.to_string())?;
    let (_, lines, _) = import(text, Some(changed), mode, redactor)?;
    Ok(lines)
}

/// What redacts in that mode, and at these places.
pub(in crate::cli) fn redactor(mode: Mode, pointers: Vec<PointerPattern>) -> io::Result<Redactor> {
    Ok(Redactor::new(mode, pointers, random()?))
}

/// Reads a capture that was `changed` last at a time. Returns it, the lines of its recording, and
/// their number of events.
fn import(
    text: &[u8],
    changed: Option<SystemTime>,
    mode: Mode,
    redactor: Redactor,
) -> Result<(Capture, Vec<u8>, u64), String> {
    let mut capture = read(text, progress::advance)?;
    if capture.began == 0 {
        // The file has no time; its modification time is an upper bound.
        capture.began = changed.map_or(0, unix_micros);
    }
    // Names come from bodies, so they are not kept in modes without bodies.
    if matches!(mode, Mode::Full | Mode::Default) {
        capture.name_peers();
    }
    let id = random_hex::<16>().map_err(|error| error.to_string())?;
    let (lines, events) = encode(&capture, redactor, id);
    Ok((capture, lines, events))
}

/// The lines of a recording, and its number of events.
pub(in crate::cli) fn encode(capture: &Capture, redactor: Redactor, id: String) -> (Vec<u8>, u64) {
    let peer = |name: &Option<String>, unknown: &str| PeerInfo {
        name: redactor
            .own_text(name.as_deref().unwrap_or(unknown))
            .into_owned(),
        dialect: "canonical".to_owned(),
    };
    let header = Header {
        version: VERSION,
        id,
        segment: 0,
        first: 1,
        began: capture.began,
        by: format!("acp-relay {} import", env!("CARGO_PKG_VERSION")),
        client: peer(&capture.client, "a client"),
        agent: peer(&capture.agent, "an agent"),
        tables: None,
        policy: "lossless".to_owned(),
        redaction: redactor.describe(),
        previous: None,
    };
    let mut encoder = EventEncoder::new(Arc::new(redactor), capture.began);
    write::header(&mut encoder.out, &header);
    let imported = EventKind::Note {
        name: "imported".to_owned(),
        text: format!("made of {}", capture.format),
        source: None,
    };
    encoder.event(0, &imported);
    // Frames that were forwarded, which is not written yet.
    let mut passed: Option<Passed> = None;
    for item in &capture.items {
        if let Some(run) = passed.take_if(|run| !item.passed || run.to != item.to) {
            encoder.event(0, &EventKind::Passed(run));
        }
        progress::advance(item.bytes.len() as u64);
        let n = encoder.add_captured(item.t, item.hop, item.to, &item.bytes);
        if item.passed {
            let run = passed.get_or_insert(Passed {
                to: item.to,
                first: n,
                last: n,
                count: 0,
            });
            run.last = n;
            run.count += 1;
        }
    }
    if let Some(run) = passed {
        encoder.event(0, &EventKind::Passed(run));
    }
    let end = EventKind::End {
        rotated: false,
        reason: "imported".to_owned(),
        digest: blake3::hash(&encoder.out).to_hex().to_string(),
    };
    encoder.event(0, &end);
    let events = encoder.last();
    (encoder.out, events)
}
