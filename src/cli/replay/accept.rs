//! Replaces a recording by a live conversation: `acp-relay test --update`.

use std::fs;
use std::io::{self, Cursor, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::NamedTempFile;

use crate::cli::console;
use crate::cli::inspect::{Capture, Item, encode};
use crate::cli::random::{random, random_hex};
use crate::recording::capture::write_line;
use crate::recording::redact::{Mode, PointerPattern, Redactor};
use crate::recording::replay::Script;
use crate::recording::{PACKED, Recording, SegmentReader, pack};

/// The compression level: zstd's own default.
const ZSTD_LEVEL: i32 = 3;

/// Replaces the recording or capture at `path`, atomically.
///
/// # Errors
/// Why it is not replaced; it is as before then.
pub(super) fn accept(path: &Path, live: &Script, places: &[PointerPattern]) -> Result<(), String> {
    let explain = |error: io::Error| console::explain(&error);
    let recording = Recording::of(path).map_err(explain)?;
    let header = recording.header();
    if recording.segments.len() > 1 {
        return Err("it has several segments; record it again".to_owned());
    }
    let mut events = recording.events().filter_map(Result::ok);
    if events.any(|event| {
        event
            .message()
            .is_some_and(|message| message.source.is_some())
    }) {
        return Err("the relay has changed messages in it; record it again".to_owned());
    }
    // Of a capture, the redaction is unknown.
    let mode = header
        .as_ref()
        .and_then(|header| Mode::from_name(&header.redaction.mode));
    let key = random().map_err(|error| error.to_string())?;
    let redactor = Redactor::new(mode.unwrap_or_default(), places.to_vec(), key);
    let mut capture = Capture::of("a test that was accepted");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    capture.began = u64::try_from(now.as_micros()).unwrap_or(0);
    if let Some(header) = &header {
        capture.client = Some(header.client.name.clone());
        capture.agent = Some(header.agent.name.clone());
    }
    capture.items = live
        .steps
        .iter()
        .map(|step| Item::unchanged(step.at, step.from.other(), step.frame.as_bytes().to_vec()))
        .collect();
    let id = random_hex::<16>().map_err(|error| error.to_string())?;
    let (mut text, _) = encode(&capture, redactor, id);
    if header.is_none() {
        text = capture_lines(&text).map_err(explain)?;
    }
    replace(path, &text).map_err(explain)
}

/// A recording as lines of a capture.
fn capture_lines(recording: &[u8]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for event in SegmentReader::new(Cursor::new(recording)).events() {
        let event = event?;
        if let Some(message) = event.message()
            && let Some(bytes) = message.body.bytes()
        {
            write_line(
                &mut lines,
                message.edge,
                event.t,
                bytes,
                message.kind.is_some(),
            );
            lines.push(b'\n');
        }
    }
    Ok(lines)
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut part = NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")))?;
    match path.to_string_lossy().ends_with(PACKED) {
        true => pack(text, &mut part, ZSTD_LEVEL)?,
        false => part.write_all(text)?,
    }
    part.as_file()
        .set_permissions(fs::metadata(path)?.permissions())?;
    part.as_file().sync_all()?;
    part.persist(path).map_err(|error| error.error)?;
    Ok(())
}
