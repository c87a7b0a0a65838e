//! The contents of a recording: a header and the events after it.
//!
//! Readers return these types, and rare events are written from them. Frames are frequent and go
//! to `write` without one.

use bytes::Bytes;
use serde_json::Value;

use crate::jsonrpc::Side;

/// The version of the format that is written.
pub const VERSION: u64 = 1;

/// The first line of every segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The version of the format.
    pub version: u64,
    /// The recording's id, the same in all its segments: 32 hexadecimal digits.
    pub id: String,
    /// The segment's number, from 0.
    pub segment: u64,
    /// The number of the segment's first event.
    pub first: u64,
    /// When the recording began, in microseconds since 1970.
    pub began: u64,
    /// The program that wrote it, with its version.
    pub by: String,
    /// The client.
    pub client: PeerInfo,
    /// The agent.
    pub agent: PeerInfo,
    /// The digest of the built-in mapping tables that were loaded, then, after a `+`, that of the
    /// user's tables.
    pub tables: Option<String>,
    /// The recorder's policy when it cannot keep up: `lossless` or `lossy`.
    pub policy: String,
    /// How secrets were redacted.
    pub redaction: Redaction,
    /// The BLAKE3 of the segment before, in hexadecimal; none in the first one.
    pub previous: Option<String>,
}

/// One side of the recorded conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its address or command, for people.
    pub name: String,
    /// The dialect that was configured for it, or `canonical`, or `auto`.
    pub dialect: String,
}

/// How secrets were redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// `msg`: a frame was received from or sent to one side.
    Message(Box<Message>),
    /// `passed`: frames were forwarded unchanged.
    Passed(Passed),
    /// `stderr`: output of the agent on stderr.
    Stderr(Payload),
    /// `proc`: a process was started or signalled, or has exited.
    Process {
        /// `start`, `signal` or `exit`.
        event: String,
        /// The program, the signal, or the exit status.
        detail: String,
    },
    /// `link`: a side connected, was lost, or ended its stream.
    Link {
        /// The side.
        side: Side,
        /// `open`, `end`, `dialect`; `lost` and `resumed` when a client reconnects to its agent.
        event: String,
        /// A description for people.
        detail: String,
    },
    /// `note`: something other than a frame that was forwarded.
    Note {
        /// Its name, as counted in the metrics.
        name: String,
        /// A description for people.
        text: String,
        /// The frame that caused it.
        source: Option<u64>,
    },
    /// `gap`: events are missing at this point.
    Gap {
        /// The number of missing events.
        events: u64,
        /// The bytes of their frames.
        bytes: u64,
        /// The reason.
        reason: String,
    },
    /// `clock`: the wall clock was set or the machine slept; the jump in microseconds.
    Clock {
        /// Positive when the wall clock is ahead.
        jump: i64,
    },
    /// `mark`: a bookmark that the user set.
    Mark(String),
    /// `resume`: a recording that was ended or torn continues.
    Resume,
    /// `end` or `rotate`: the last event of the segment.
    End {
        /// Whether the recording continues in another segment.
        rotated: bool,
        /// The reason it ended.
        reason: String,
        /// The BLAKE3 of all bytes of the segment before this line, in hexadecimal.
        digest: String,
    },
    /// A kind that is unknown to this version.
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
    pub kind: Option<MessageKind>,
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

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// It expects an answer.
    Request,
    /// It expects none.
    Notification,
    /// A response with a result.
    Result,
    /// A response with an error.
    Error,
}

/// The bytes of a frame, or of stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// `m`: JSON in one line.
    Json(Bytes),
    /// `b`: any other UTF-8 text.
    Text(Bytes),
    /// `x`: any other bytes.
    Bytes(Bytes),
    /// `z`: omitted; its length in bytes.
    Omitted(u64),
}

/// Frames that were forwarded unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The side they were sent to.
    pub to: Side,
    /// The event number of the first of them, as received.
    pub first: u64,
    /// The event number of the last of them. All frames received from the other side in between are
    /// included.
    pub last: u64,
    /// How many there are.
    pub count: u64,
}

impl Message {
    /// Whether the relay received it (rather than sent it).
    #[must_use]
    pub fn is_received(&self) -> bool {
        self.edge != self.to
    }
}

impl MessageKind {
    /// The word for it in a recording.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
        }
    }

    /// The kind with that name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::Request, Self::Notification, Self::Result, Self::Error]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }

    /// Whether it is a response.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Result | Self::Error)
    }
}

impl Payload {
    /// The bytes; `None` when they were omitted.
    #[must_use]
    pub const fn bytes(&self) -> Option<&Bytes> {
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
            Self::Json(bytes) | Self::Text(bytes) | Self::Bytes(bytes) => bytes.len() as u64,
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
        serde_json::from_slice(self.bytes()?).ok()
    }
}
