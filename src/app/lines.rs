//! Recorded conversations, read line by line.
//!
//! Two forms, told apart for each line: a capture (`{"dir":"c2a","ts":…,"msg":…}`, where a line
//! that was no JSON is `"raw":"…"` and `"dir":"note"` is a remark) and the bare message. The
//! message keeps its bytes in both. Not here: what is wrong with a message.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use serde_json::value::RawValue;

use crate::wire::{Frame, Side};

/// Longest line that is read, in bytes. What is beyond it is skipped, and the line is then
/// no JSON.
const LONGEST: u64 = 64 << 20;

/// One message of a recorded conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// Who sent it, where the file says so.
    pub(super) from: Option<Side>,
    /// The message, or whatever stands in its place.
    pub(super) message: Frame,
}

/// The messages of a file; blank lines and remarks are passed over.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self { reader, number: 0 }
    }

    /// The next line without its end, or `None` at the end of the file.
    fn raw(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let count = (&mut self.reader)
            .take(LONGEST)
            .read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.last() != Some(&b'\n') {
            self.reader.skip_until(b'\n')?;
        }
        if self.number == 1 && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        line.truncate(line.trim_ascii_end().len());
        Ok(Some(line))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.raw() {
                Ok(line) => line?,
                Err(error) => return Some(Err(error)),
            };
            let heard = if line.is_empty() {
                None
            } else {
                understand(line)
            };
            if let Some((from, message)) = heard {
                return Some(Ok(Line {
                    number: self.number,
                    from,
                    message,
                }));
            }
        }
    }
}

/// The message of a line and its sender; `None` for a remark. A capture's line that is none is
/// taken as a message, so that it is complained about.
fn understand(line: Vec<u8>) -> Option<(Option<Side>, Frame)> {
    let Some((dir, parts)) = capture(&line) else {
        return Some((None, Frame::from(line)));
    };
    let from = match dir.as_str() {
        "c2a" => Side::Client,
        "a2c" => Side::Agent,
        _ => return None,
    };
    let text = match (parts.get("msg"), parts.get("raw")) {
        (Some(message), _) => Some(message.get().to_owned()),
        (None, Some(raw)) => serde_json::from_str(raw.get()).ok(),
        (None, None) => None,
    };
    Some((
        Some(from),
        text.map_or_else(|| Frame::from(line), Frame::from),
    ))
}

/// The direction and the members of a capture's line; `None` for any other line.
fn capture(line: &[u8]) -> Option<(String, BTreeMap<String, Box<RawValue>>)> {
    memchr::memmem::find(line, b"\"dir\"")?;
    let parts: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(line).ok()?;
    if parts.contains_key("jsonrpc") || parts.contains_key("method") {
        return None;
    }
    let dir: String = serde_json::from_str(parts.get("dir")?.get()).ok()?;
    ["c2a", "a2c", "note"]
        .contains(&dir.as_str())
        .then_some((dir, parts))
}
