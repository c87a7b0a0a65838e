//! The contents of a recording: a header and the events after it.
//!
//! Readers return these types, and rare events are written from them. Frames are frequent and go
//! to `write` without one.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::seconds::{self, signed_seconds};
use jsonrpc::{Kind, Limits, Side, is_json};

/// The version of the format that is written.
pub const VERSION: u64 = 1;

/// The first line of every segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// The version of the format.
    #[serde(rename = "acpr")]
    pub version: u64,
    /// The recording's id, the same in all its segments: 32 hexadecimal digits.
    pub id: String,
    /// The segment's number, from 0.
    #[serde(rename = "seg")]
    pub segment: u64,
    /// The number of the segment's first event.
    pub first: u64,
    /// When the recording began, in microseconds since 1970.
    #[serde(with = "seconds")]
    pub began: u64,
    /// The program that wrote it, with its version.
    pub by: String,
    /// The client.
    pub client: PeerInfo,
    /// The agent.
    pub agent: PeerInfo,
    /// The digest of the built-in mapping tables that were loaded, then, after a `+`, that of the
    /// user's tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<String>,
    /// The recorder's policy when it cannot keep up: `lossless` or `lossy`.
    pub policy: String,
    /// How secrets were redacted.
    #[serde(rename = "redact")]
    pub redaction: Redaction,
    /// The BLAKE3 of the segment before, in hexadecimal; none in the first one.
    #[serde(rename = "prev")]
    pub previous: Option<String>,
}

/// One side of the recorded conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerInfo {
    /// Its address or command, for people.
    pub name: String,
    /// The dialect that was configured for it, or `canonical`, or `auto`.
    pub dialect: String,
}

/// How secrets were redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Redaction {
    /// `full`, `default`, `structure` or `meta`.
    pub mode: String,
    /// The rules' name and version, such as `default@1`.
    pub rules: String,
    /// A fingerprint of the hash key: hashes of two recordings with the same one can be compared.
    pub key: String,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// Its number: 1, 2, 3 … across all segments.
    pub n: u64,
    /// Microseconds since the recording began, on a monotonic clock.
    pub t: u64,
    /// Microseconds since 1970, by the wall clock.
    pub w: u64,
    /// What happened.
    pub kind: EventKind,
}

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

/// What happened. The kinds that are skipped here hold a payload, a whole line or a bare text, and
/// are written and read by `write` and `parse`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "lowercase")]
pub enum EventKind {
    /// `msg`: a frame was received from or sent to one side.
    #[serde(skip)]
    Message(Box<Message>),
    /// `passed`: frames were forwarded unchanged.
    Passed(Passed),
    /// `stderr`: output of the agent on stderr.
    #[serde(skip)]
    Stderr(Payload),
    /// `proc`: a process was started or signalled, or has exited.
    #[serde(rename = "proc")]
    Process {
        /// `start`, `signal` or `exit`.
        #[serde(rename = "ev", default)]
        event: String,
        /// The program, the signal, or the exit status.
        #[serde(rename = "what", default)]
        detail: String,
    },
    /// `link`: a side connected, was lost, or ended its stream.
    Link {
        /// The side.
        #[serde(rename = "h")]
        side: Side,
        /// `open`, `end`, `dialect`; `lost` and `resumed` when its connection is lost and the next
        /// one continues the conversation.
        #[serde(rename = "ev", default)]
        event: String,
        /// A description for people.
        #[serde(rename = "what", default)]
        detail: String,
    },
    /// `note`: something other than a frame that was forwarded.
    Note {
        /// Its name, as counted in the metrics.
        #[serde(default)]
        name: String,
        /// The frame that caused it.
        #[serde(rename = "of", default, skip_serializing_if = "Option::is_none")]
        source: Option<u64>,
        /// A description for people.
        #[serde(default)]
        text: String,
    },
    /// `gap`: events are missing at this point.
    Gap {
        /// The number of missing events.
        events: u64,
        /// The bytes of their frames.
        #[serde(default)]
        bytes: u64,
        /// The reason.
        #[serde(rename = "why", default)]
        reason: String,
    },
    /// `clock`: the wall clock was set or the machine slept; the jump in microseconds.
    Clock {
        /// Positive when the wall clock is ahead.
        #[serde(with = "signed_seconds")]
        jump: i64,
    },
    /// `mark`: a bookmark that the user set.
    #[serde(skip)]
    Mark(String),
    /// `resume`: a recording that was ended or torn continues.
    Resume,
    /// `end` or `rotate`: the last event of the segment.
    #[serde(skip)]
    End {
        /// Whether the recording continues in another segment.
        rotated: bool,
        /// The reason it ended.
        reason: String,
        /// The BLAKE3 of all bytes of the segment before this line, in hexadecimal.
        digest: String,
    },
    /// A kind that is unknown to this version.
    #[serde(skip)]
    Other {
        /// Its `k`.
        kind: String,
        /// Its whole line.
        line: Bytes,
    },
}

/// A frame received from or sent to one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The side of the relay where it was seen: the client's or the agent's.
    pub edge: Side,
    /// The side it is sent to.
    pub to: Side,
    /// The id as spelled in JSON; `None` where the frame has none.
    pub id: Option<String>,
    /// The method; of a response, that of its request.
    pub method: Option<String>,
    /// The id of the ACP session.
    pub session: Option<String>,
    /// The kind of message, when it is known without the body.
    pub kind: Option<Kind>,
    /// The number of the request event that this answers.
    pub answers: Option<u64>,
    /// The number of the received frame that this one was made from.
    pub source: Option<u64>,
    /// The rules that translated it, as `dialect/rule`.
    pub rules: Vec<String>,
    /// An RFC 6902 patch from the source frame to this one.
    pub patch: Option<Value>,
    /// JSON Pointers of redacted values; `""` is the whole body, or a body that is not JSON.
    pub redacted: Vec<String>,
    /// The bytes of the frame.
    pub body: Payload,
}

/// The bytes of a frame, or of stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<B = Bytes> {
    /// `m`: JSON in one line, without white space around it.
    Json(B),
    /// `b`: any other UTF-8 text.
    Text(B),
    /// `x`: any other bytes.
    Bytes(B),
    /// `z`: omitted; its length in bytes.
    Omitted(u64),
}

/// Frames that were forwarded unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The side they were sent to.
    #[serde(rename = "h")]
    pub to: Side,
    /// The event number of the first of them, as received.
    #[serde(rename = "from")]
    pub first: u64,
    /// The event number of the last of them. All frames received from the other side in between are
    /// included.
    #[serde(rename = "to")]
    pub last: u64,
    /// How many there are.
    pub count: u64,
}

impl RecordedEvent {
    /// The message, if it is one.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match &self.kind {
            EventKind::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Whether the recording ends with it.
    #[must_use]
    pub const fn is_end(&self) -> bool {
        matches!(self.kind, EventKind::End { rotated: false, .. })
    }

    /// Its number and times.
    #[must_use]
    pub const fn stamp(&self) -> Stamp {
        let Self { n, t, w, .. } = *self;
        Stamp { n, t, w }
    }
}

impl Message {
    /// Whether the relay received it (rather than sent it).
    #[must_use]
    pub fn is_received(&self) -> bool {
        self.edge != self.to
    }
}

/// Whether a frame that is known to be JSON fits into one line unchanged.
#[must_use]
pub fn fits_line(json: &[u8]) -> bool {
    let space = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    !space(json.first()) && !space(json.last()) && memchr::memchr2(b'\n', b'\r', json).is_none()
}

impl EventKind {
    /// The text for people that it has besides a body: a description, a reason, a mark.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Process { detail: text, .. }
            | Self::Link { detail: text, .. }
            | Self::Note { text, .. }
            | Self::Gap { reason: text, .. }
            | Self::End { reason: text, .. }
            | Self::Mark(text) => Some(text),
            _ => None,
        }
    }

    /// The same event with another text, if it has one that a peer may have contributed to.
    #[must_use]
    pub fn map_text(mut self, change: impl FnOnce(String) -> String) -> Self {
        if let Self::Process { detail: text, .. }
        | Self::Link { detail: text, .. }
        | Self::Note { text, .. }
        | Self::Mark(text) = &mut self
        {
            *text = change(std::mem::take(text));
        }
        self
    }
}

impl<B: AsRef<[u8]>> Payload<B> {
    /// The payload with these bytes: JSON where they are, and fit into one line.
    #[must_use]
    pub fn of(bytes: B) -> Self {
        if fits_line(bytes.as_ref()) && is_json(bytes.as_ref(), &Limits::default()) {
            return Self::Json(bytes);
        }
        Self::of_text(bytes)
    }

    /// The payload with these bytes, which are not JSON.
    #[must_use]
    pub fn of_text(bytes: B) -> Self {
        match simdutf8::basic::from_utf8(bytes.as_ref()) {
            Ok(_) => Self::Text(bytes),
            Err(_) => Self::Bytes(bytes),
        }
    }

    /// The bytes; `None` when they were omitted.
    #[must_use]
    pub const fn bytes(&self) -> Option<&B> {
        match self {
            Self::Json(bytes) | Self::Text(bytes) | Self::Bytes(bytes) => Some(bytes),
            Self::Omitted(_) => None,
        }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Omitted(length) => *length,
            Self::Json(bytes) | Self::Text(bytes) | Self::Bytes(bytes) => {
                bytes.as_ref().len() as u64
            }
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The body parsed as JSON; `None` when it is not JSON.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.bytes()?.as_ref()).ok()
    }
}
