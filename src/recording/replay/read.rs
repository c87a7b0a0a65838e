//! Reads a script: from a recording, or from a capture of a line per message.
//!
//! Not here: the format of recordings (see `recording::read`), and that of captures (see
//! `recording::capture`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::script::{Edge, Script, ScriptError};
use crate::recording::capture::{self, Holds, Lines};
use crate::recording::{Event, PACKED, PLAIN, Passed, Recording, What};
use crate::wire::{Frame, Side};

/// Longest beginning of a file that is looked at to tell what it is.
const HEAD: u64 = 4096;

impl Script {
    /// Reads what passed `edge`.
    ///
    /// # Errors
    /// When the file cannot be read, or there is nothing in it that could be said again.
    pub fn open(path: &Path, edge: Edge) -> Result<Self, ScriptError> {
        let unreadable = |source| ScriptError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let (script, missing) = if is_recording(path).map_err(unreadable)? {
            of_recording(path, edge).map_err(unreadable)?
        } else {
            let script = of_capture(path).map_err(unreadable)?;
            let unknown = || ScriptError::Unknown {
                path: path.to_owned(),
            };
            (script.ok_or_else(unknown)?, 0)
        };
        let path = path.to_owned();
        if missing > 0 {
            return Err(ScriptError::Bodiless { path, missing });
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
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(name.ends_with(PLAIN) || name.ends_with(PACKED) || head.starts_with(br#"{"acpr":"#))
}

/// The script, and how many of its messages have no body.
fn of_recording(path: &Path, edge: Edge) -> io::Result<(Script, usize)> {
    let recording = Recording::of(path)?;
    let events: Vec<Event> = recording.events().collect::<io::Result<_>>()?;
    let passed: Vec<Passed> = events
        .iter()
        .filter_map(|event| match event.what {
            What::Passed(passed) => Some(passed),
            _ => None,
        })
        .collect();
    let edge = match edge {
        Edge::Client => Side::Client,
        Edge::Agent => Side::Agent,
    };
    let mut found = BTreeMap::new();
    let mut missing = 0;
    for event in &events {
        let What::Message(message) = &event.what else {
            continue;
        };
        let handed_on = |to: Side| {
            let mut passed = passed.iter();
            passed.any(|run| run.to == to && (run.first..=run.last).contains(&event.n))
        };
        let here = message.hop == edge || (message.to == edge && handed_on(edge));
        if !here {
            continue;
        }
        // What was said stands where the frame that caused it was heard.
        let place = (message.of.unwrap_or(event.n), event.n);
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
        let Holds::Message { from, message, .. } = &line.holds else {
            continue;
        };
        match *from {
            Some(from) => {
                let at = line.micros().unwrap_or_default();
                script.push(line.number, at, from, message.clone());
            }
            // Nobody said who speaks; further down, it is a line that was torn.
            None if script.steps.is_empty() => return Ok(None),
            None => {}
        }
    }
    Ok(Some(script))
}
