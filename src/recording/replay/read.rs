//! Reads a script: from a recording, or from a capture of a line per message.
//!
//! Not here: the format of recordings (see `recording::read`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use super::script::{Edge, Script, ScriptError};
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
    let mut lines = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        lines += 1;
        let Some((from, at, frame)) = capture_line(&line) else {
            if lines == 1 {
                return Ok(None);
            }
            continue;
        };
        script.push(lines, at, from, frame);
    }
    Ok(Some(script))
}

/// Who said what when; `None` for a note and what is no such line.
fn capture_line(line: &str) -> Option<(Side, u64, Frame)> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(line).ok()?;
    let value = |name| serde_json::from_str::<Value>(members.get(name)?.get()).ok();
    let from = match value("dir")?.as_str()? {
        "c2a" => Side::Client,
        "a2c" => Side::Agent,
        _ => return None,
    };
    let seconds = value("ts").and_then(|at| at.as_f64()).unwrap_or_default();
    let frame = match members.get("msg") {
        Some(message) => Frame::from(message.get().to_owned()),
        None => Frame::from(value("raw")?.as_str()?.to_owned()),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time before the beginning is the beginning"
    )]
    Some((from, (seconds * 1e6) as u64, frame))
}
