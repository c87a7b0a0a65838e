//! Reads a script from a recording, or from a capture with one message a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::script::{Edge, Script, ScriptError};
use crate::jsonrpc::{Frame, Side};
use crate::recording::capture::{self, LineContent, Lines};
use crate::recording::{
    EventKind, NotRecording, PACKED, PLAIN, RecordedEvent, Recording, View, ViewFilter,
};

/// The number of bytes that are read to detect the format of a file.
const MAX_HEAD: u64 = 4096;

impl Script {
    /// Reads the conversation at `edge`.
    ///
    /// # Errors
    /// When the file cannot be read or contains no messages.
    pub fn open(path: &Path, edge: Edge) -> Result<Self, ScriptError> {
        let unreadable = |source| ScriptError::Unreadable {
            path: path.to_owned(),
            source,
        };
        if let Some(error) = NotRecording::of(path) {
            let path = path.to_owned();
            return Err(ScriptError::NotRecording { path, error });
        }
        let (script, missing) = if is_recording(path).map_err(unreadable)? {
            let recording = Recording::of(path).map_err(unreadable)?;
            recording.check().map_err(|error| match error {
                NotRecording::Unreadable(error) => unreadable(error),
                error => ScriptError::NotRecording {
                    path: path.to_owned(),
                    error,
                },
            })?;
            of_recording(&recording, edge).map_err(unreadable)?
        } else {
            let script = of_capture(path).map_err(unreadable)?;
            let unknown = || ScriptError::Unknown {
                path: path.to_owned(),
            };
            (script.ok_or_else(unknown)?, 0)
        };
        let path = path.to_owned();
        if missing > 0 {
            return Err(ScriptError::NoBodies { path, missing });
        }
        if script.steps.is_empty() {
            return Err(ScriptError::Empty { path });
        }
        Ok(script)
    }
}

fn is_recording(path: &Path) -> io::Result<bool> {
    let name = path.to_string_lossy();
    let mut head = Vec::new();
    File::open(path)?.take(MAX_HEAD).read_to_end(&mut head)?;
    Ok(name.ends_with(PLAIN) || name.ends_with(PACKED) || head.starts_with(br#"{"acpr":"#))
}

/// The script, and the number of its messages without a body.
fn of_recording(recording: &Recording, edge: Edge) -> io::Result<(Script, usize)> {
    let events: Vec<RecordedEvent> = recording.events().collect::<io::Result<_>>()?;
    let filter = ViewFilter::new(
        View::At(match edge {
            Edge::Client => Side::Client,
            Edge::Agent => Side::Agent,
        }),
        &events,
    );
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
