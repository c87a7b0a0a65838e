//! Replaces a recording by a live conversation: `acp-relay test --update`.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use crate::cli::console;
use crate::cli::random::{random, random_hex};
use crate::cli::replace_file::replace_file;
use analysis::import::{Capture, Item, encode};
use jsonrpc::Choice as _;
use recording::redact::{Mode, PointerPattern, Redactor};
use recording::{PACKED, Recording, pack, unix_micros};
use replay::{Script, ScriptStep};

/// The compression level: zstd's own default.
const ZSTD_LEVEL: i32 = 3;

/// Replaces the recording at `path`, atomically.
///
/// # Errors
/// Why it is not replaced; it is as before then.
pub(super) fn accept(path: &Path, live: &Script, places: &[PointerPattern]) -> Result<(), String> {
    let explain = |error: io::Error| console::explain(&error);
    let recording = Recording::of(path).map_err(explain)?;
    let Some(header) = recording.header() else {
        return Err(
            "it is a capture; make a recording of it: `acp-relay inspect import`".to_owned(),
        );
    };
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
    let mode = Mode::from_name(&header.redaction.mode).unwrap_or_default();
    let redactor = Redactor::new(mode, places.to_vec(), random().map_err(explain)?);
    let id = random_hex::<16>().map_err(explain)?;
    let item = |step: &ScriptStep| {
        Item::unchanged(step.at, step.from.other(), step.frame.as_bytes().to_vec())
    };
    let capture = Capture {
        format: "a test that was accepted",
        began: unix_micros(SystemTime::now()),
        client: Some(header.client.name),
        agent: Some(header.agent.name),
        items: live.steps.iter().map(item).collect(),
        ..Capture::default()
    };
    let (mut text, _) = encode(&capture, redactor, id, |_| ());
    if path.to_string_lossy().ends_with(PACKED) {
        let plain = std::mem::take(&mut text);
        pack(&plain[..], &mut text, ZSTD_LEVEL).map_err(explain)?;
    }
    let mode = fs::metadata(path).map_err(explain)?.permissions();
    replace_file(path, &text, Some(mode)).map_err(explain)
}
