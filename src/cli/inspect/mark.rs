//! `acp-relay inspect mark`: adds a mark to a recording, to find a place again.
//!
//! A recording that is being written has one writer, which reads marks from a file beside it; only
//! its owner can read that file, and secrets are redacted in it too. To a recording that has ended,
//! or was cut off, the mark is appended; nothing in it is changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use rustix::fs::FlockOperation;
use serde_json::json;

use super::select::{recording, report_unreadable};
use crate::cli::console::print;
use crate::cli::exit;
use crate::cli::random::random;
use jsonrpc::Choice as _;
use observe::recorder::marks_path;
use recording::redact::{Mode, Redactor};
use recording::write::{self, Stamp};
use recording::{EventKind, PACKED, Parsed, SegmentReader, unix_micros};

/// The arguments of `inspect mark`.
#[derive(Debug, Args)]
pub(super) struct Mark {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The text of the mark
    #[arg(value_name = "TEXT")]
    text: String,
    /// Report as JSON: file, by (mark or writer), n (by mark)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Mark) -> Result<ExitCode, ExitCode> {
    let last = recording(&args.file)?.segments.pop();
    let last = last.unwrap_or_else(|| args.file.clone());
    if last.to_string_lossy().ends_with(PACKED) {
        let what = "the last segment is compressed, so nothing can be added to it";
        return Err(exit::fail(
            exit::DATA,
            &format!("{}: {what}", last.display()),
        ));
    }
    let marked = mark(&last, &args.text).map_err(|error| report_unreadable(&last, &error))?;
    if !args.json {
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = match marked {
        None => json!({"by": "writer"}),
        Some(n) => json!({"by": "mark", "n": n}),
    };
    report["file"] = last.to_string_lossy().into();
    Ok(print(&report.to_string(), exit::SUCCESS))
}

/// Returns the number of the mark's event, or `None` if the recording has a writer, which sets it.
fn mark(path: &Path, text: &str) -> io::Result<Option<u64>> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let redactor = Redactor::new(read_mode(&file)?, Vec::new(), random()?);
    let text = redactor.own_text(text).into_owned();
    file.rewind()?;
    let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    if lock.is_err() {
        return queue_mark(path, &text).map(|()| None);
    }
    append_mark(file, text).map(Some)
}

/// Queues a mark for the writer.
fn queue_mark(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(marks_path(path))?;
    file.write_all(format!("{}\n", text.replace(['\n', '\r'], " ")).as_bytes())
}

/// Appends a mark to a recording without a writer. If the recording was ended, ends it again.
fn append_mark(mut file: File, text: String) -> io::Result<u64> {
    let mut reader = SegmentReader::new(&file);
    let mut last = Stamp::default();
    let mut ended = None;
    for entry in reader.by_ref() {
        match entry?.parsed {
            Parsed::Event(event) => {
                last = event.stamp();
                match event.kind {
                    EventKind::End {
                        rotated: false,
                        reason,
                        ..
                    } => ended = Some(reason),
                    EventKind::Resume | EventKind::Mark(_) => {}
                    _ => ended = None,
                }
            }
            Parsed::Header(header) => {
                last.n = header.first.saturating_sub(1);
                last.w = header.began;
            }
            Parsed::Invalid(_) => {}
        }
    }
    let mut out = Vec::new();
    if reader.torn_bytes() > 0 {
        out.push(b'\n');
        // The lost line may have been anything.
        ended = None;
    }
    // The recording's monotonic clock is lost.
    last.w = unix_micros(SystemTime::now());
    for what in [EventKind::Resume, EventKind::Mark(text)] {
        last.n += 1;
        write::event(&mut out, last, &what);
    }
    let marked = last.n;
    if let Some(reason) = ended {
        let mut digest = blake3::Hasher::new();
        file.rewind()?;
        io::copy(&mut file, &mut digest)?;
        let end = EventKind::End {
            rotated: false,
            reason,
            digest: digest.update(&out).finalize().to_hex().to_string(),
        };
        last.n += 1;
        write::event(&mut out, last, &end);
    }
    file.write_all(&out)?;
    Ok(marked)
}

/// The redaction mode of a recording; for an unknown one, the default, which redacts secrets.
fn read_mode(file: &File) -> io::Result<Mode> {
    let first = SegmentReader::new(file).next().transpose()?;
    let mode = match first.map(|entry| entry.parsed) {
        Some(Parsed::Header(header)) => Mode::from_name(&header.redaction.mode).ok(),
        _ => None,
    };
    Ok(mode.unwrap_or_default())
}
