//! Adds a mark to a recording.
//!
//! A recording that is being written has one writer, which reads marks from a file beside it; only
//! its owner can read that file, and secrets are redacted in it too. To a recording that has ended,
//! or was cut off, the mark is appended; nothing in it is changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::FlockOperation;

use super::folder::marks_path;
use jsonrpc::Choice as _;
use recording::redact::{Mode, Redactor};
use recording::write::{self, Stamp};
use recording::{EventKind, Parsed, SegmentReader, unix_micros};

/// Adds a mark at this time to the last segment of a recording; `key` is that of redaction. Returns
/// the number of its event, or `None` if the recording has a writer, which sets it.
///
/// # Errors
/// The file cannot be read or written.
pub fn mark(path: &Path, text: &str, key: [u8; 32], now: SystemTime) -> io::Result<Option<u64>> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let redactor = Redactor::new(read_mode(&file)?, Vec::new(), key);
    let text = redactor.own_text(text).into_owned();
    file.rewind()?;
    let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    if lock.is_err() {
        return queue_mark(path, &text).map(|()| None);
    }
    append_mark(file, text, now).map(Some)
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
fn append_mark(mut file: File, text: String, now: SystemTime) -> io::Result<u64> {
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
    last.w = unix_micros(now);
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
