//! Captured conversations, read line by line: what others wrote down, and recordings as one of them.
//!
//! Three forms, told apart for each line: a capture (`{"dir":"c2a","ts":…,"msg":…}`, or
//! `"side":"client"` for the direction, where a line that was no JSON is `"raw":"…"`, its bytes
//! that are no UTF-8 halves of surrogate pairs, and `"dir":"note"` is a remark), a recording (what
//! the relay has heard at either edge), and the bare message. The message keeps its bytes in all,
//! and a changed one can be put back into a capture's line. A packed segment is unpacked on the
//! way, and a file whose messages go over several lines is unfolded (see `unfold`). Not here: what is
//! wrong with a message, whose a plain line is, and captures that are one document (see
//! `cli::inspect::import`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::files::ZSTD;
use super::surrogates::{spelled, unspelled};
use super::unfold::{is_folded, unfold};
use super::{Body, Found, MessageKind, Sealed, What, members};
use crate::jsonrpc::{Frame, Side};

/// Longest line that is read, in bytes: the longest message by default, and a little for the
/// members of a capture. What is beyond it is skipped.
const LONGEST: u64 = (64 << 20) + (64 << 10);

/// One line of a file.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: u64,
    /// All of it, without its end; of a recording's line, what it holds as a capture.
    pub bytes: Vec<u8>,
    /// Whether it was longer than any message may be, so that its end is missing.
    pub cut: bool,
    /// What it holds.
    pub holds: Holds,
    /// Of an answer in a recording, the method that its sender was asked.
    pub asked: Option<String>,
}

/// What a line holds.
#[derive(Clone, Debug)]
pub enum Holds {
    /// Nothing, or a remark.
    Nothing,
    /// A message, or whatever stands in its place.
    Message {
        /// Who sent it, where the file says so.
        from: Option<Side>,
        /// The message.
        message: Frame,
        /// Where it stands in a capture's line.
        place: Option<Place>,
    },
}

/// The places in a capture's line that change with its message.
#[derive(Clone, Debug)]
pub struct Place {
    message: Range<usize>,
    /// The direction, quotes included.
    direction: Range<usize>,
    /// The words it uses for the directions, the client's first.
    words: [&'static str; 2],
}

/// The lines of a file.
///
/// ```
/// use acp_relay::recording::capture::{Holds, Lines};
/// use acp_relay::jsonrpc::Side;
///
/// # fn main() -> std::io::Result<()> {
/// let file = br#"{"dir":"c2a","ts":1.5,"msg":{"jsonrpc":"2.0","method":"x"}}"#;
/// for line in Lines::new(&file[..]) {
///     let line = line?;
///     assert_eq!(line.micros(), Some(1_500_000));
///     let Holds::Message { from, message, .. } = line.holds else { continue };
///     assert_eq!(from, Some(Side::Client));
///     assert_eq!(message.as_bytes(), br#"{"jsonrpc":"2.0","method":"x"}"#);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    number: u64,
    /// Reading has failed, which is said once.
    failed: bool,
}

/// The words for the two directions, in the ways in which captures spell them.
const WORDS: [[&str; 2]; 3] = [
    ["\"c2a\"", "\"a2c\""],
    ["\"client_to_agent\"", "\"agent_to_client\""],
    ["\"client\"", "\"agent\""],
];

/// Opens a file for its lines, packed segment or not.
///
/// # Errors
/// When it cannot be read, or is packed otherwise than segments are, or in no encoding of JSON.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    // What cannot be wound back, such as a pipe, is read as it comes.
    if !file.metadata()?.is_file() {
        return unfolded(BufReader::new(file));
    }
    (&mut file).take(4).read_to_end(&mut head)?;
    file.rewind()?;
    if head == ZSTD {
        return Ok(Box::new(BufReader::new(Sealed::new(file)?)));
    }
    unfolded(BufReader::new(file))
}

/// What is read there, a message a line. What is folded is read to its end first; all else as it
/// comes.
///
/// # Errors
/// As of [`open`].
pub fn unfolded<'r>(mut reader: impl BufRead + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
    if !is_folded(reader.fill_buf()?) {
        return Ok(Box::new(reader));
    }
    let mut text = Vec::new();
    reader.read_to_end(&mut text)?;
    let lines = unfold(&text)?.into_owned();
    Ok(Box::new(Cursor::new(lines)))
}

impl<R: BufRead> Lines<R> {
    /// The lines of what is read there.
    pub const fn new(reader: R) -> Self {
        Self {
            reader,
            number: 0,
            failed: false,
        }
    }

    /// The next line without its end and whether it was cut, or `None` at the end of the file.
    fn raw(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        let mut line = Vec::new();
        let count = (&mut self.reader)
            .take(LONGEST)
            .read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(None);
        }
        self.number += 1;
        let open = line.last() != Some(&b'\n');
        let cut = open && self.reader.skip_until(b'\n')? > 0;
        if self.number == 1 && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        line.truncate(line.trim_ascii_end().len());
        Ok(Some((line, cut)))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let (bytes, cut, asked) = loop {
            let (bytes, cut) = match self.raw().transpose()? {
                Ok(line) => line,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            match recorded(&bytes) {
                None => break (bytes, cut, None),
                Some(Some((said, asked))) => break (said, cut, asked),
                Some(None) => {}
            }
        };
        let holds = understand(&bytes);
        Some(Ok(Line {
            number: self.number,
            bytes,
            cut,
            holds,
            asked,
        }))
    }
}

impl Line {
    /// When it was, by the capture's `ts`: in microseconds since the beginning.
    #[must_use]
    pub fn micros(&self) -> Option<u64> {
        let (_, at) = members(&self.bytes).find(|(name, _)| *name == b"ts")?;
        let seconds: f64 = serde_json::from_slice(&self.bytes[at]).ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time before the beginning is the beginning"
        )]
        Some((seconds * 1e6).round() as u64)
    }
}

impl Place {
    /// The line with another message, maybe of the other side.
    #[must_use]
    pub fn retell(&self, line: &[u8], from: Side, message: &[u8]) -> Vec<u8> {
        let word = self.words[from as usize].as_bytes();
        let mut parts = [(&self.message, message), (&self.direction, word)];
        parts.sort_by_key(|(range, _)| range.start);
        let [(first, one), (second, two)] = parts;
        [
            &line[..first.start],
            one,
            &line[first.end..second.start],
            two,
            &line[second.end..],
        ]
        .concat()
    }
}

/// What a line holds. A capture's line without a message is taken as one, so that it is
/// complained about.
fn understand(line: &[u8]) -> Holds {
    if line.trim_ascii().is_empty() {
        return Holds::Nothing;
    }
    let plain = |from| Holds::Message {
        from,
        message: Frame::from(line.to_vec()),
        place: None,
    };
    let Some((direction, members)) = capture(line) else {
        return plain(None);
    };
    let found = WORDS.into_iter().find_map(|words| {
        let at = words.iter().position(|word| *word == direction)?;
        Some(([Side::Client, Side::Agent][at], words))
    });
    let Some((from, words)) = found else {
        return Holds::Nothing;
    };
    let range = |raw: &str| {
        let start = raw.as_ptr() as usize - line.as_ptr() as usize;
        start..start + raw.len()
    };
    if let Some(message) = members.get("msg") {
        return Holds::Message {
            from: Some(from),
            message: Frame::from(message.get().to_owned()),
            place: Some(Place {
                message: range(message.get()),
                direction: range(direction),
                words,
            }),
        };
    }
    let raw = members
        .get("raw")
        .and_then(|raw| unspelled(raw.get().as_bytes()));
    match raw {
        Some(raw) => Holds::Message {
            from: Some(from),
            message: Frame::from(raw),
            place: None,
        },
        None => plain(Some(from)),
    }
}

/// A recording's line as a capture has it, if a side has said something in it, with the method that
/// it answers; `None` for any other line.
fn recorded(line: &[u8]) -> Option<Option<(Vec<u8>, Option<String>)>> {
    if !(line.starts_with(b"{\"acpr\":") || line.starts_with(b"{\"n\":")) {
        return None;
    }
    let event = match super::line(&Bytes::from([line, b"\n"].concat())) {
        Found::Header(_) => return Some(None),
        Found::Event(event) => event,
        Found::Broken(_) => return None,
    };
    let What::Message(message) = event.what else {
        return Some(None);
    };
    let (name, text) = match &message.body {
        Body::Json(text) if message.is_heard() => ("msg", text.to_vec()),
        Body::Text(text) | Body::Bytes(text) if message.is_heard() => {
            ("raw", spelled(text).into_bytes())
        }
        _ => return Some(None),
    };
    let direction = WORDS[0][message.to.other() as usize];
    let (seconds, micros) = (event.t / 1_000_000, event.t % 1_000_000);
    let head = format!("{{\"dir\":{direction},\"ts\":{seconds}.{micros:06},\"{name}\":");
    let answers = message.kind.is_some_and(MessageKind::is_answer);
    let asked = message.method.filter(|_| answers);
    Some(Some(([head.as_bytes(), &text, b"}"].concat(), asked)))
}

/// The members of a line, by name, as they stand in it.
type Members<'l> = BTreeMap<Cow<'l, str>, &'l RawValue>;

/// The direction, quotes included, and the members of a capture's line; `None` for any other line.
fn capture(line: &[u8]) -> Option<(&str, Members<'_>)> {
    let names: [&[u8]; 2] = [b"\"dir\"", b"\"side\""];
    if !names
        .iter()
        .any(|name| memchr::memmem::find(line, name).is_some())
    {
        return None;
    }
    let members: Members<'_> = serde_json::from_slice(line).ok()?;
    if members.contains_key("jsonrpc") || members.contains_key("method") {
        return None;
    }
    let direction = members.get("dir").or_else(|| members.get("side"))?.get();
    let known = WORDS.iter().flatten().chain(&["\"note\""]);
    known
        .into_iter()
        .any(|word| *word == direction)
        .then_some((direction, members))
}
