//! Writes a recording: one line of JSON for each event, with its checksum last.
//!
//! Frames are inserted verbatim, so that a line can be read by people and by `grep`, and the exact
//! bytes can be restored. Everything is appended to a buffer of the caller. See `parse` for the
//! inverse.

use super::event::{Body, Header, Message, MessageKind, Passed, VERSION, What};
use super::spell::{escaped, list, number, quoted, seconds, text};
use crate::jsonrpc::Side;

/// Bytes of a line after its last member before the checksum: `,"crc":"01234567"}`.
pub(super) const TAIL: usize = 18;

/// When an event happened, and its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Its number.
    pub n: u64,
    /// Microseconds since the recording began.
    pub t: u64,
    /// Microseconds since 1970.
    pub w: u64,
}

/// The metadata of a frame. All strings are in JSON form without quotes, except the id, which has
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The side of the relay where it was seen.
    pub hop: Side,
    /// The side it is sent to.
    pub to: Side,
    /// The kind of message.
    pub kind: Option<MessageKind>,
    /// Its id.
    pub id: Option<&'a [u8]>,
    /// Its method, or that of its request.
    pub method: Option<&'a [u8]>,
    /// Its session.
    pub session: Option<&'a [u8]>,
    /// The event number of the request that it answers.
    pub answers: Option<u64>,
    /// The event number of the frame it was made from.
    pub of: Option<u64>,
    /// The rules that translated it.
    pub rules: &'a [String],
    /// The patch from that frame, as JSON.
    pub patch: Option<&'a [u8]>,
    /// JSON Pointers of redacted values.
    pub redacted: &'a [String],
}

/// The body of a frame as it is to be written.
#[derive(Clone, Copy, Debug)]
pub enum Kept<'a> {
    /// One JSON value in one line, without white space around it.
    Line(&'a [u8]),
    /// Any other bytes.
    Any(&'a [u8]),
    /// Omitted; its length.
    Not(u64),
}

impl Kept<'_> {
    /// The number of bytes that are written verbatim.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Line(bytes) | Self::Any(bytes) => bytes.len(),
            Self::Not(_) => 0,
        }
    }
}

impl<'a> Facts<'a> {
    /// No metadata but the direction.
    #[must_use]
    pub const fn new(hop: Side, to: Side) -> Self {
        Self {
            hop,
            to,
            kind: None,
            id: None,
            method: None,
            session: None,
            answers: None,
            of: None,
            rules: &[],
            patch: None,
            redacted: &[],
        }
    }
}

/// Whether a frame that is known to be JSON fits into one line unchanged.
#[must_use]
pub fn fits_line(json: &[u8]) -> bool {
    let space = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    !space(json.first()) && !space(json.last()) && memchr::memchr2(b'\n', b'\r', json).is_none()
}

/// Appends a header.
pub fn header(out: &mut Vec<u8>, header: &Header) {
    let start = out.len();
    number(out, b"{\"acpr\":", VERSION);
    text(out, b",\"id\":", &header.id);
    number(out, b",\"seg\":", header.segment);
    number(out, b",\"first\":", header.first);
    seconds(out, b",\"began\":", header.began);
    text(out, b",\"by\":", &header.by);
    for (name, peer) in [
        (&b",\"client\":{\"name\":"[..], &header.client),
        (b",\"agent\":{\"name\":", &header.agent),
    ] {
        text(out, name, &peer.name);
        text(out, b",\"dialect\":", &peer.dialect);
        out.push(b'}');
    }
    if let Some(tables) = &header.tables {
        text(out, b",\"tables\":", tables);
    }
    text(out, b",\"policy\":", &header.policy);
    text(out, b",\"redact\":{\"mode\":", &header.redaction.mode);
    text(out, b",\"rules\":", &header.redaction.rules);
    text(out, b",\"key\":", &header.redaction.key);
    out.extend_from_slice(b"},\"prev\":");
    match &header.previous {
        Some(previous) => text(out, b"", previous),
        None => out.extend_from_slice(b"null"),
    }
    seal(out, start);
}

/// Appends a frame; [`FrameWriter`](super::FrameWriter) is faster for many.
pub fn frame(out: &mut Vec<u8>, stamp: Stamp, facts: &Facts<'_>, body: Kept<'_>) {
    let start = out.len();
    number(out, b"{\"n\":", stamp.n);
    times(out, stamp);
    members(out, facts);
    keep(out, body);
    seal(out, start);
}

/// Appends the metadata of a frame.
pub(super) fn members(out: &mut Vec<u8>, facts: &Facts<'_>) {
    quoted(out, b",\"k\":", b"msg");
    out.extend_from_slice(match (facts.hop, facts.to) {
        (Side::Client, Side::Client) => b",\"h\":\"client\",\"d\":\"<\"",
        (Side::Client, Side::Agent) => b",\"h\":\"client\",\"d\":\">\"",
        (Side::Agent, Side::Client) => b",\"h\":\"agent\",\"d\":\"<\"",
        (Side::Agent, Side::Agent) => b",\"h\":\"agent\",\"d\":\">\"",
    });
    if let Some(kind) = facts.kind {
        quoted(out, b",\"is\":", kind.name().as_bytes());
    }
    if let Some(id) = facts.id {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id);
    }
    if let Some(method) = facts.method {
        quoted(out, b",\"me\":", method);
    }
    if let Some(session) = facts.session {
        quoted(out, b",\"s\":", session);
    }
    if let Some(request) = facts.answers {
        number(out, b",\"re\":", request);
    }
    if let Some(heard) = facts.of {
        number(out, b",\"of\":", heard);
    }
    if !facts.rules.is_empty() {
        list(out, b",\"rules\":", facts.rules);
    }
    if let Some(patch) = facts.patch {
        out.extend_from_slice(b",\"p\":");
        out.extend_from_slice(patch);
    }
    if !facts.redacted.is_empty() {
        list(out, b",\"rd\":", facts.redacted);
    }
}

/// Appends any event.
pub fn event(out: &mut Vec<u8>, stamp: Stamp, what: &What) {
    let start = match what {
        What::Message(heard) => return message(out, stamp, heard),
        What::Passed(passed) => pass(out, stamp, passed),
        What::Stderr(body) => {
            let start = begin(out, stamp, b"stderr");
            keep(out, kept(body));
            start
        }
        What::Process { event, what } => {
            let start = begin(out, stamp, b"proc");
            text(out, b",\"ev\":", event);
            text(out, b",\"what\":", what);
            start
        }
        What::Link { side, event, what } => {
            let start = begin(out, stamp, b"link");
            text(out, b",\"h\":", side.name());
            text(out, b",\"ev\":", event);
            text(out, b",\"what\":", what);
            start
        }
        What::Note {
            name,
            text: say,
            of,
        } => {
            let start = begin(out, stamp, b"note");
            text(out, b",\"name\":", name);
            if let Some(of) = of {
                number(out, b",\"of\":", *of);
            }
            text(out, b",\"text\":", say);
            start
        }
        What::Gap { events, bytes, why } => {
            let start = begin(out, stamp, b"gap");
            number(out, b",\"events\":", *events);
            number(out, b",\"bytes\":", *bytes);
            text(out, b",\"why\":", why);
            start
        }
        What::Clock { jump } => {
            let start = begin(out, stamp, b"clock");
            out.extend_from_slice(b",\"jump\":");
            if *jump < 0 {
                out.push(b'-');
            }
            seconds(out, b"", jump.unsigned_abs());
            start
        }
        What::Mark(say) => {
            let start = begin(out, stamp, b"mark");
            text(out, b",\"text\":", say);
            start
        }
        What::Resume => begin(out, stamp, b"resume"),
        What::End {
            rotated,
            why,
            digest,
        } => {
            let start = begin(out, stamp, if *rotated { b"rotate" } else { b"end" });
            text(out, b",\"why\":", why);
            text(out, b",\"b3\":", digest);
            start
        }
        What::Other { kind, line } => return other(out, stamp, kind, line),
    };
    seal(out, start);
}

/// A borrowed view of a body.
#[must_use]
pub fn kept(body: &Body) -> Kept<'_> {
    match body {
        Body::Json(bytes) => Kept::Line(bytes),
        Body::Text(bytes) | Body::Bytes(bytes) => Kept::Any(bytes),
        Body::Absent(length) => Kept::Not(*length),
    }
}

fn message(out: &mut Vec<u8>, stamp: Stamp, message: &Message) {
    let inner = |text: &Option<String>| text.as_ref().map(|text| escaped(text));
    let (method, session) = (inner(&message.method), inner(&message.session));
    let patch = message.patch.as_ref().map(ToString::to_string);
    let facts = Facts {
        hop: message.hop,
        to: message.to,
        kind: message.kind,
        id: message.id.as_deref().map(str::as_bytes),
        method: method.as_deref(),
        session: session.as_deref(),
        answers: message.answers,
        of: message.of,
        rules: &message.rules,
        patch: patch.as_deref().map(str::as_bytes),
        redacted: &message.redacted,
    };
    frame(out, stamp, &facts, kept(&message.body));
}

fn pass(out: &mut Vec<u8>, stamp: Stamp, passed: &Passed) -> usize {
    let start = begin(out, stamp, b"passed");
    text(out, b",\"h\":", passed.to.name());
    number(out, b",\"from\":", passed.first);
    number(out, b",\"to\":", passed.last);
    number(out, b",\"count\":", passed.count);
    start
}

/// Appends an event of unknown kind with its original members, under a possibly different number.
fn other(out: &mut Vec<u8>, stamp: Stamp, kind: &str, line: &[u8]) {
    let start = begin(out, stamp, &escaped(kind));
    for (name, value) in super::tokens::members(line) {
        if ![&b"n"[..], b"t", b"w", b"k", b"crc"].contains(&name) {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name);
            out.extend_from_slice(b"\":");
            out.extend_from_slice(&line[value]);
        }
    }
    seal(out, start);
}

fn begin(out: &mut Vec<u8>, stamp: Stamp, kind: &[u8]) -> usize {
    let start = out.len();
    number(out, b"{\"n\":", stamp.n);
    times(out, stamp);
    quoted(out, b",\"k\":", kind);
    start
}

/// Appends the times of an event.
pub(super) fn times(out: &mut Vec<u8>, stamp: Stamp) {
    seconds(out, b",\"t\":", stamp.t);
    seconds(out, b",\"w\":", stamp.w);
}

/// Ends the line that began at `start`.
pub(super) fn seal(out: &mut Vec<u8>, start: usize) {
    let mut tail = *b",\"crc\":\"........\"}\n";
    tail[8..16].copy_from_slice(&checksum(&out[start..]));
    out.extend_from_slice(&tail);
}

/// CRC-32C (RFC 3720, B.4) in eight lower-case hexadecimal digits.
pub(super) fn checksum(line: &[u8]) -> [u8; 8] {
    let sum = crc32c::crc32c(line);
    let mut digits = [0; 8];
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(sum >> (28 - 4 * at) & 15) as usize];
    }
    digits
}

/// Appends a body.
pub(super) fn keep(out: &mut Vec<u8>, body: Kept<'_>) {
    match body {
        Kept::Line(json) => {
            out.extend_from_slice(b",\"m\":");
            out.extend_from_slice(json);
        }
        Kept::Any(bytes) => match simdutf8::basic::from_utf8(bytes) {
            Ok(say) => text(out, b",\"b\":", say),
            Err(_) => {
                out.extend_from_slice(b",\"x\":\"");
                let encoded = data_encoding::BASE64.encode(bytes);
                out.extend_from_slice(encoded.as_bytes());
                out.push(b'"');
            }
        },
        Kept::Not(length) => number(out, b",\"z\":", length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(&checksum(b"123456789"), b"e3069283");
    }
}
