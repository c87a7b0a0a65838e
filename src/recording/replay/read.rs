//! Reads a script from a recording, or from a capture with one message a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::script::{Script, ScriptError, ScriptFault};
use crate::jsonrpc::{Frame, Side};
use crate::recording::capture::{self, LineContent, Lines};
use crate::recording::{
    EventKind, NotRecording, PACKED, PLAIN, RecordedEvent, Recording, View, ViewFilter,
};

/// The number of bytes that are read to detect the format of a file.
const MAX_HEAD: u64 = 4096;

impl Script {
    /// Reads the conversation at `edge` of the relay. The edges differ where a dialect was
    /// translated.
    ///
    /// # Errors
    /// When the file cannot be read or contains no messages.
    pub fn open(path: &Path, edge: Side) -> Result<Self, ScriptError> {
        read(path, edge).map_err(|reason| ScriptError {
            path: path.to_owned(),
            reason,
        })
    }
}

fn read(path: &Path, edge: Side) -> Result<Script, ScriptFault> {
    if let Some(error) = NotRecording::of(path) {
        return Err(error.into());
    }
    let (script, missing) = if is_recording(path)? {
        let recording = Recording::of(path)?;
        recording.check()?;
        of_recording(&recording, edge)?
    } else {
        (of_capture(path)?.ok_or(ScriptFault::Unknown)?, 0)
    };
    match (missing, script.steps.is_empty()) {
        (0, false) => Ok(script),
        (0, true) => Err(ScriptFault::Empty),
        _ => Err(ScriptFault::NoBodies(missing)),
    }
}

fn is_recording(path: &Path) -> io::Result<bool> {
    let name = path.to_string_lossy();
    let mut head = Vec::new();
    File::open(path)?.take(MAX_HEAD).read_to_end(&mut head)?;
    Ok(name.ends_with(PLAIN) || name.ends_with(PACKED) || head.starts_with(br#"{"acpr":"#))
}

/// The script, and the number of its messages without a body.
fn of_recording(recording: &Recording, edge: Side) -> io::Result<(Script, usize)> {
    let events: Vec<RecordedEvent> = recording.events().collect::<io::Result<_>>()?;
    let filter = ViewFilter::new(View::At(edge), &events);
    let mut found = BTreeMap::new();
    let mut missing = 0;
    let mut client_closed = false;
    for event in &events {
        let message = match &event.kind {
            EventKind::Message(message) => message,
            EventKind::Link { side, event, .. } => {
                client_closed |= *side == Side::Client && event == "end";
                continue;
            }
            _ => continue,
        };
        // Frames that the relay created after the client has left were sent by no peer and will be
        // created again.
        client_closed &= !(message.is_received() && message.edge == Side::Client);
        let synthetic = client_closed && !message.is_received() && message.source.is_none();
        if synthetic || !filter.shows(event.n, message) {
            continue;
        }
        // A sent frame has the place of its source.
        let place = (message.source.unwrap_or(event.n), event.n);
        match message.body.bytes() {
            Some(bytes) => {
                let frame = Frame::new(bytes.clone());
                found.insert(place, (event.t, message.to.other(), frame));
            }
            None => missing += 1,
        }
    }
    let mut script = Script::default();
    for ((_, n), (at, from, frame)) in found {
        script.push(n, at, from, frame);
    }
    Ok((script, missing))
}

/// The script, if the file is a capture.
fn of_capture(path: &Path) -> io::Result<Option<Script>> {
    let mut script = Script::default();
    for line in Lines::new(capture::open(path)?) {
        let line = line?;
        let LineContent::Message { from, message, .. } = &line.content else {
            continue;
        };
        match *from {
            Some(from) => {
                let at = line.micros().unwrap_or_default();
                script.push(line.number, at, from, message.clone());
            }
            // The sender is unknown; further down, the line is torn.
            None if script.steps.is_empty() => return Ok(None),
            None => {}
        }
    }
    Ok(Some(script))
}
