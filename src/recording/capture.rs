//! Reads captured conversations line by line, in foreign formats or as recordings.
//!
//! Each line has one of three forms: a capture (`{"dir":"c2a","ts":…,"msg":…}`, or
//! `"side":"client"` for the direction; a line that is not JSON is `"raw":"…"`, with bytes that are
//! not UTF-8 as lone surrogates; `"dir":"note"` is a comment), a line of a recording (what the
//! relay received from either side), or the bare message. Messages keep their bytes, and a changed
//! one can be put back into a capture's line. Packed segments are unpacked, and files whose
//! messages span several lines are expanded (see `expand`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Cursor, Read as _};
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::expand::{expand, needs_expanding, one_line};
use super::files::open_source;
use super::surrogates::{decode_bytes, encode_bytes};
use super::{EventKind, Parsed, Payload, SegmentSource};
use jsonrpc::text::member;
use jsonrpc::{Frame, Kind, Side};

/// Limit of a line in bytes: the default limit of a message, and a little for the members of a
/// capture. Bytes beyond it are skipped.
const MAX_LINE: u64 = (64 << 20) + (64 << 10);

/// One line of a file.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: u64,
    /// Its bytes, without the line end; of a line of a recording, the equivalent line of a capture.
    pub bytes: Vec<u8>,
    /// Whether it exceeded the limit and was truncated.
    pub cut: bool,
    /// The contents.
    pub content: LineContent,
    /// Of a response in a recording, the method of its request.
    pub request_method: Option<String>,
    /// What the relay sent the client as the answer to `initialize` before this line, where a
    /// recording has it: it may state another version than the agent.
    pub negotiated: Option<Frame>,
}

/// What a line of a recording is in a capture.
enum Recorded {
    /// No message of a side.
    Nothing,
    /// A line, and the method of the request that it answers.
    Line(Vec<u8>, Option<String>),
    /// See [`Line::negotiated`].
    Negotiated(Frame),
}

/// The contents of a line.
#[derive(Clone, Debug)]
pub enum LineContent {
    /// An empty line or a comment.
    Empty,
    /// A message, or any text in the place of one.
    Message {
        /// The sender, where the file names it.
        from: Option<Side>,
        /// The message.
        message: Frame,
        /// The position of the message in a capture's line.
        span: Option<MessageSpan>,
    },
}

/// The byte ranges of a capture's line that depend on its message.
#[derive(Clone, Debug)]
pub struct MessageSpan {
    message: Range<usize>,
    /// The direction, including quotes.
    direction: Range<usize>,
    /// The words for the directions in this form of capture, the client's first.
    directions: [&'static str; 2],
}

/// The lines of a file.
///
/// ```
/// use recording::capture::{LineContent, Lines};
/// use jsonrpc::Side;
///
/// # fn main() -> std::io::Result<()> {
/// let file = br#"{"dir":"c2a","ts":1.5,"msg":{"jsonrpc":"2.0","method":"x"}}"#;
/// for line in Lines::new(&file[..]) {
///     let line = line?;
///     assert_eq!(line.micros(), Some(1_500_000));
///     let LineContent::Message { from, message, .. } = line.content else { continue };
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
    /// Reading has failed; the error was returned.
    failed: bool,
}

/// The words for the two directions in the known forms of captures.
const DIRECTIONS: [[&str; 2]; 3] = [
    ["\"c2a\"", "\"a2c\""],
    ["\"client_to_agent\"", "\"agent_to_client\""],
    ["\"client\"", "\"agent\""],
];

/// Opens a file for reading lines; a packed segment is unpacked.
///
/// # Errors
/// When it cannot be read, is packed otherwise than segments are, or is not in an encoding of JSON.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    match open_source(path)? {
        SegmentSource::Plain(file) => expanded(BufReader::new(file)),
        packed => Ok(Box::new(BufReader::new(packed))),
    }
}

/// The same input with one message a line. Input that needs expanding is read to its end first;
/// other input is streamed.
///
/// # Errors
/// See [`open`].
pub fn expanded<'r>(mut reader: impl BufRead + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
    if !needs_expanding(reader.fill_buf()?) {
        return Ok(Box::new(reader));
    }
    let mut text = Vec::new();
    reader.read_to_end(&mut text)?;
    let lines = expand(&text)?.into_owned();
    Ok(Box::new(Cursor::new(lines)))
}

impl<R: BufRead> Lines<R> {
    /// The lines of a reader.
    pub const fn new(reader: R) -> Self {
        Self {
            reader,
            number: 0,
            failed: false,
        }
    }

    /// The next line without its end and whether it was truncated; `None` at the end of the file.
    fn raw(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        let mut line = Vec::new();
        let count = (&mut self.reader)
            .take(MAX_LINE)
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
        let mut negotiated = None;
        let (bytes, cut, request_method) = loop {
            let (bytes, cut) = match self.raw().transpose()? {
                Ok(line) => line,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            match from_recording(&bytes) {
                None => break (bytes, cut, None),
                Some(Recorded::Line(line, method)) => break (line, cut, method),
                Some(Recorded::Negotiated(answer)) => negotiated = Some(answer),
                Some(Recorded::Nothing) => {}
            }
        };
        let content = parse_line(&bytes);
        Some(Ok(Line {
            number: self.number,
            bytes,
            cut,
            content,
            request_method,
            negotiated,
        }))
    }
}

impl Line {
    /// The capture's `ts` in microseconds since the beginning.
    #[must_use]
    pub fn micros(&self) -> Option<u64> {
        let seconds: f64 = serde_json::from_slice(member(&self.bytes, "ts")?).ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time before the beginning is the beginning"
        )]
        Some((seconds * 1e6).round() as u64)
    }
}

impl MessageSpan {
    /// The line with another message, which may come from the other side.
    #[must_use]
    pub fn with_message(&self, line: &[u8], from: Side, message: &[u8]) -> Vec<u8> {
        let word = from.of(&self.directions).as_bytes();
        let mut parts = [(&self.message, message), (&self.direction, word)];
        parts.sort_by_key(|(range, _)| range.start);
        let [(first, one), (second, two)] = parts;
        let part = |range: Range<usize>| line.get(range).unwrap_or_default();
        [
            part(0..first.start),
            one,
            part(first.end..second.start),
            two,
            part(second.end..line.len()),
        ]
        .concat()
    }
}

/// Appends the line of a capture, without a line break: a message of `from`, `micros` after the
/// beginning. What is not JSON becomes `raw`.
pub fn write_line(out: &mut Vec<u8>, from: Side, micros: u64, message: &[u8], is_json: bool) {
    let [directions, ..] = &DIRECTIONS;
    let direction = from.of(directions);
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let head = format!("{{\"dir\":{direction},\"ts\":{seconds}.{micros:06},");
    out.extend_from_slice(head.as_bytes());
    if is_json {
        out.extend_from_slice(b"\"msg\":");
        out.extend(one_line(message));
    } else {
        out.extend_from_slice(b"\"raw\":");
        out.extend_from_slice(encode_bytes(message).as_bytes());
    }
    out.push(b'}');
}

/// The contents of a line. A capture's line without a message is treated as a message, so that it
/// is reported as invalid.
fn parse_line(line: &[u8]) -> LineContent {
    if line.trim_ascii().is_empty() {
        return LineContent::Empty;
    }
    let plain = |from| LineContent::Message {
        from,
        message: Frame::from(line.to_vec()),
        span: None,
    };
    let Some((direction, members)) = capture_members(line) else {
        return plain(None);
    };
    let found = DIRECTIONS.into_iter().find_map(|directions| {
        let mut sides = [Side::Client, Side::Agent].into_iter();
        Some((
            sides.find(|side| *side.of(&directions) == direction)?,
            directions,
        ))
    });
    let Some((from, words)) = found else {
        return LineContent::Empty;
    };
    let range = |raw: &str| {
        let start = raw.as_ptr() as usize - line.as_ptr() as usize;
        start..start + raw.len()
    };
    if let Some(message) = members.get("msg") {
        return LineContent::Message {
            from: Some(from),
            message: Frame::from(message.get().to_owned()),
            span: Some(MessageSpan {
                message: range(message.get()),
                direction: range(direction),
                directions: words,
            }),
        };
    }
    let raw = members
        .get("raw")
        .and_then(|raw| decode_bytes(raw.get().as_bytes()));
    match raw {
        Some(raw) => LineContent::Message {
            from: Some(from),
            message: Frame::from(raw),
            span: None,
        },
        None => plain(Some(from)),
    }
}

/// A line of a recording; `None` for any other line.
fn from_recording(line: &[u8]) -> Option<Recorded> {
    if !(line.starts_with(b"{\"acpr\":") || line.starts_with(b"{\"n\":")) {
        return None;
    }
    let event = match super::parse_line(&Bytes::from([line, b"\n"].concat())) {
        Parsed::Header(_) => return Some(Recorded::Nothing),
        Parsed::Event(event) => event,
        Parsed::Invalid(_) => return None,
    };
    let EventKind::Message(message) = event.kind else {
        return Some(Recorded::Nothing);
    };
    let Some(text) = message.body.bytes() else {
        return Some(Recorded::Nothing);
    };
    if !message.is_received() {
        let negotiated = message.edge == Side::Client
            && message.kind == Some(Kind::Result)
            && message.method.as_deref() == Some("initialize");
        return Some(match negotiated {
            true => Recorded::Negotiated(Frame::new(text.clone())),
            false => Recorded::Nothing,
        });
    }
    let is_json = matches!(message.body, Payload::Json(_));
    let mut line = Vec::new();
    write_line(&mut line, message.to.other(), event.t, text, is_json);
    let answers = message.kind.is_some_and(Kind::is_answer);
    let request_method = message.method.filter(|_| answers);
    Some(Recorded::Line(line, request_method))
}

/// The members of a line by name, in their original spelling.
type Members<'l> = BTreeMap<Cow<'l, str>, &'l RawValue>;

/// The direction, including quotes, and the members of a capture's line; `None` for any other line.
fn capture_members(line: &[u8]) -> Option<(&str, Members<'_>)> {
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
    let known = DIRECTIONS.iter().flatten().chain(&["\"note\""]);
    known
        .into_iter()
        .any(|word| *word == direction)
        .then_some((direction, members))
}
