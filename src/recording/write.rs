//! Writes a recording: one line of JSON for each event, with its checksum last.
//!
//! Frames are inserted verbatim, so that a line can be read by people and by `grep`, and the exact
//! bytes can be restored. Everything is appended to a buffer of the caller. See `parse` for the
//! inverse.

use super::event::{EventKind, Header, Message, Payload, VERSION};
pub use super::event::{Stamp, fits_line};
use super::seconds::{self, digits};
use jsonrpc::{Kind, Side};

/// Bytes of a line after its last member before the checksum: `,"crc":"01234567"}`.
pub(super) const TAIL: usize = 18;

/// Typical bytes of a line besides the frame.
const OVERHEAD: usize = 256;

/// The metadata of a frame. All strings are in JSON form without quotes, except the id, which has
/// them.
#[derive(Clone, Copy, Debug)]
pub struct FrameInfo<'a> {
    /// The side of the relay where it was seen.
    pub edge: Side,
    /// The side it is sent to.
    pub to: Side,
    /// The kind of message.
    pub kind: Option<Kind>,
    /// Its id.
    pub id: Option<&'a [u8]>,
    /// Its method, or that of its request.
    pub method: Option<&'a [u8]>,
    /// Its session.
    pub session: Option<&'a [u8]>,
    /// The event number of the request that it answers.
    pub answers: Option<u64>,
    /// The event number of the frame it was made from.
    pub source: Option<u64>,
    /// The rules that translated it.
    pub rules: &'a [String],
    /// The patch from that frame, as JSON.
    pub patch: Option<&'a [u8]>,
    /// JSON Pointers of redacted values.
    pub redacted: &'a [String],
}

impl<'a> FrameInfo<'a> {
    /// No metadata but the direction.
    #[must_use]
    pub const fn new(edge: Side, to: Side) -> Self {
        Self {
            edge,
            to,
            kind: None,
            id: None,
            method: None,
            session: None,
            answers: None,
            source: None,
            rules: &[],
            patch: None,
            redacted: &[],
        }
    }
}

/// Appends a header.
pub fn header(out: &mut Vec<u8>, header: &Header) {
    let start = out.len();
    let version = VERSION;
    let header = Header {
        version,
        ..header.clone()
    };
    serde_json::to_writer(&mut *out, &header).expect("a header can be written to memory");
    out.pop();
    end_line(out, start);
}

/// Appends a frame.
pub fn frame(
    out: &mut Vec<u8>,
    stamp: Stamp,
    info: &FrameInfo<'_>,
    body: &Payload<impl AsRef<[u8]>>,
) {
    let length = body.bytes().map_or(0, |bytes| bytes.as_ref().len());
    out.reserve(OVERHEAD + length);
    let start = out.len();
    begin_stamp(out, stamp);
    frame_members(out, info);
    write_payload(out, body);
    end_line(out, start);
}

/// Appends the metadata of a frame.
fn frame_members(out: &mut Vec<u8>, info: &FrameInfo<'_>) {
    quoted(out, b",\"k\":", b"msg");
    out.extend_from_slice(match (info.edge, info.to) {
        (Side::Client, Side::Client) => b",\"h\":\"client\",\"d\":\"<\"",
        (Side::Client, Side::Agent) => b",\"h\":\"client\",\"d\":\">\"",
        (Side::Agent, Side::Client) => b",\"h\":\"agent\",\"d\":\"<\"",
        (Side::Agent, Side::Agent) => b",\"h\":\"agent\",\"d\":\">\"",
    });
    if let Some(kind) = info.kind {
        quoted(out, b",\"is\":", kind.name().as_bytes());
    }
    if let Some(id) = info.id {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id);
    }
    if let Some(method) = info.method {
        quoted(out, b",\"me\":", method);
    }
    if let Some(session) = info.session {
        quoted(out, b",\"s\":", session);
    }
    if let Some(request) = info.answers {
        number(out, b",\"re\":", request);
    }
    if let Some(source) = info.source {
        number(out, b",\"of\":", source);
    }
    if !info.rules.is_empty() {
        list(out, b",\"rules\":", info.rules);
    }
    if let Some(patch) = info.patch {
        out.extend_from_slice(b",\"p\":");
        out.extend_from_slice(patch);
    }
    if !info.redacted.is_empty() {
        list(out, b",\"rd\":", info.redacted);
    }
}

/// Appends any event.
pub fn event(out: &mut Vec<u8>, stamp: Stamp, kind: &EventKind) {
    let start = out.len();
    match kind {
        EventKind::Message(msg) => return message(out, stamp, msg),
        EventKind::Other { line, .. } => {
            // What its members mean is not known, so it stays as it was.
            out.extend_from_slice(line);
            return out.push(b'\n');
        }
        EventKind::Stderr(body) => {
            begin_line(out, stamp, b"stderr");
            write_payload(out, body);
        }
        EventKind::Mark(value) => {
            begin_line(out, stamp, b"mark");
            text(out, b",\"text\":", value);
        }
        EventKind::End {
            rotated,
            reason,
            digest,
        } => {
            begin_line(out, stamp, if *rotated { b"rotate" } else { b"end" });
            text(out, b",\"why\":", reason);
            text(out, b",\"b3\":", digest);
        }
        known => {
            begin_stamp(out, stamp);
            let members = out.len();
            serde_json::to_writer(&mut *out, known).expect("an event can be written to memory");
            if let Some(brace) = out.get_mut(members) {
                *brace = b',';
            }
            out.pop();
        }
    }
    end_line(out, start);
}

fn message(out: &mut Vec<u8>, stamp: Stamp, message: &Message) {
    let inner = |text: &Option<String>| text.as_ref().map(|text| escaped(text));
    let (method, session) = (inner(&message.method), inner(&message.session));
    let patch = message.patch.as_ref().map(ToString::to_string);
    let info = FrameInfo {
        edge: message.edge,
        to: message.to,
        kind: message.kind,
        id: message.id.as_deref().map(str::as_bytes),
        method: method.as_deref(),
        session: session.as_deref(),
        answers: message.answers,
        source: message.source,
        rules: &message.rules,
        patch: patch.as_deref().map(str::as_bytes),
        redacted: &message.redacted,
    };
    frame(out, stamp, &info, &message.body);
}

fn begin_line(out: &mut Vec<u8>, stamp: Stamp, kind: &[u8]) {
    begin_stamp(out, stamp);
    quoted(out, b",\"k\":", kind);
}

/// Begins a line with the number and the times of an event.
fn begin_stamp(out: &mut Vec<u8>, stamp: Stamp) {
    number(out, b"{\"n\":", stamp.n);
    seconds::write(out, b",\"t\":", stamp.t);
    seconds::write(out, b",\"w\":", stamp.w);
}

/// Ends the line that began at `start`.
fn end_line(out: &mut Vec<u8>, start: usize) {
    let mut tail = *b",\"crc\":\"........\"}\n";
    tail[8..16].copy_from_slice(&checksum(out.get(start..).unwrap_or_default()));
    out.extend_from_slice(&tail);
}

/// CRC-32C (RFC 3720, B.4) in eight lower-case hexadecimal digits.
pub(super) fn checksum(line: &[u8]) -> [u8; 8] {
    let mut digits = [0; 8];
    data_encoding::HEXLOWER.encode_mut(&crc32c::crc32c(line).to_be_bytes(), &mut digits);
    digits
}

/// Appends a body; bytes that are UTF-8 are written as text.
fn write_payload(out: &mut Vec<u8>, body: &Payload<impl AsRef<[u8]>>) {
    match body {
        Payload::Json(json) => {
            out.extend_from_slice(b",\"m\":");
            out.extend_from_slice(json.as_ref());
        }
        Payload::Text(bytes) | Payload::Bytes(bytes) => {
            match simdutf8::basic::from_utf8(bytes.as_ref()) {
                Ok(value) => text(out, b",\"b\":", value),
                Err(_) => {
                    let encoded = data_encoding::BASE64.encode(bytes.as_ref());
                    quoted(out, b",\"x\":", encoded.as_bytes());
                }
            }
        }
        Payload::Omitted(length) => number(out, b",\"z\":", *length),
    }
}

/// An array of strings.
fn list(out: &mut Vec<u8>, name: &[u8], texts: &[String]) {
    out.extend_from_slice(name);
    for (at, value) in texts.iter().enumerate() {
        text(out, if at == 0 { b"[" } else { b"," }, value);
    }
    out.push(b']');
}

/// A string that needs no escapes.
fn quoted(out: &mut Vec<u8>, name: &[u8], raw: &[u8]) {
    out.extend_from_slice(name);
    out.push(b'"');
    out.extend_from_slice(raw);
    out.push(b'"');
}

/// Any string.
fn text(out: &mut Vec<u8>, name: &[u8], value: &str) {
    out.extend_from_slice(name);
    serde_json::to_writer(out, value).expect("a text can be written to memory");
}

/// The JSON form of a string without its quotes.
fn escaped(value: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 2);
    text(&mut out, b"", value);
    out.pop();
    out.split_off(1)
}

/// A number.
fn number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    digits(out, value);
}
