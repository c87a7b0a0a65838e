//! What stands in a recording: the header, and the events after it.
//!
//! These are the types that readers get and that seldom events are written from; frames, which
//! are not seldom, go to the writer without one. Not here: how they are spelled (see `write`,
//! `parse`).

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
    /// The recording, the same in all its segments: 32 hexadecimal digits.
    pub id: String,
    /// The segment's number, from 0.
    pub segment: u64,
    /// The number of the segment's first event.
    pub first: u64,
    /// When the recording began, in microseconds since 1970.
    pub began: u64,
    /// The program that wrote it, with its version.
    pub by: String,
    /// The client's end.
    pub client: Peer,
    /// The agent's end.
    pub agent: Peer,
    /// The mapping tables that were at hand: the digest of those built in, and behind a `+` that of
    /// the user's.
    pub tables: Option<String>,
    /// `lossless` or `lossy`.
    pub policy: String,
    /// What is left out.
    pub redaction: Redaction,
    /// The BLAKE3 of the segment before, in hexadecimal; none in the first one.
    pub previous: Option<String>,
}

/// One end of the recorded conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Where it is, for a person.
    pub name: String,
    /// The dialect it was told to speak, or `canonical`, or `auto`.
    pub dialect: String,
}

/// How secrets were kept out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    /// `full`, `default`, `structure` or `meta`.
    pub mode: String,
    /// The rules' name and version, such as `default@1`.
    pub rules: String,
    /// Tells whether two recordings were made under one key, so that their hashes can be compared.
    pub key: String,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number: 1, 2, 3 … through all segments.
    pub n: u64,
    /// Microseconds since the recording began, on a clock that never goes back.
    pub t: u64,
    /// Microseconds since 1970, by the wall clock.
    pub w: u64,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum What {
    /// `msg`: a frame crossed an edge of the relay.
    Message(Box<Message>),
    /// `passed`: frames left the relay with the bytes they came with.
    Passed(Passed),
    /// `stderr`: the agent wrote this to its stderr.
    Stderr(Body),
    /// `proc`: a process was started, signalled, or has ended.
    Process {
        /// `start`, `signal` or `exit`.
        event: String,
        /// The program, the signal, how it ended.
        what: String,
    },
    /// `link`: an end was connected, lost, or ended its stream.
    Link {
        /// Whose link.
        side: Side,
        /// `open`, `end`, `dialect`; `lost` and `resumed` when a client comes back to its agent.
        event: String,
        /// For a person.
        what: String,
    },
    /// `note`: something that is not simply a frame passed on.
    Note {
        /// Its name, as counted.
        name: String,
        /// For a person.
        text: String,
        /// The frame that caused it.
        of: Option<u64>,
    },
    /// `gap`: events are missing here.
    Gap {
        /// How many.
        events: u64,
        /// The bytes of their frames.
        bytes: u64,
        /// Why.
        why: String,
    },
    /// `clock`: the wall clock was set, or the machine slept; by so many microseconds.
    Clock {
        /// Positive when the wall clock is ahead.
        jump: i64,
    },
    /// `mark`: somebody wants to find this place again.
    Mark(String),
    /// `resume`: a recording that had ended, or was torn, goes on.
    Resume,
    /// `end`: nothing comes after this in the segment.
    End {
        /// Whether the recording goes on in another segment.
        rotated: bool,
        /// Why it ended.
        why: String,
        /// The BLAKE3 of all of the segment before this line, in hexadecimal.
        digest: String,
    },
    /// A kind that this version does not know.
    Other {
        /// Its `k`.
        kind: String,
        /// Its whole line.
        line: Bytes,
    },
}

/// A frame at an edge of the relay.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The edge: the client's or the agent's.
    pub hop: Side,
    /// Where it is headed.
    pub to: Side,
    /// The id as spelled in JSON, `None` where the frame has none.
    pub id: Option<String>,
    /// The method; of an answer, that of its request.
    pub method: Option<String>,
    /// The session it is about.
    pub session: Option<String>,
    /// What it is, as far as it is known without its body.
    pub kind: Option<MessageKind>,
    /// The number of the request that this answers.
    pub answers: Option<u64>,
    /// The number of the heard frame that led to this one.
    pub of: Option<u64>,
    /// The rules that made it out of that one, as `dialect/rule`.
    pub rules: Vec<String>,
    /// An RFC 6902 patch from that one to this.
    pub patch: Option<Value>,
    /// JSON Pointers of what was redacted; `""` is the whole body, or what is no JSON.
    pub redacted: Vec<String>,
    /// The frame.
    pub body: Body,
}

/// What kind of message a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// It wants an answer.
    Request,
    /// It wants none.
    Notification,
    /// An answer.
    Result,
    /// An answer that says why there is none.
    Error,
}

/// The bytes of a frame, or of stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// `m`: JSON in one line.
    Json(Bytes),
    /// `b`: any other UTF-8 text.
    Text(Bytes),
    /// `x`: any other bytes.
    Bytes(Bytes),
    /// `z`: left out; its length.
    Absent(u64),
}

/// Frames that left with the bytes they came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Whom they were handed to.
    pub to: Side,
    /// The number of the first of them, as heard.
    pub first: u64,
    /// The number of the last of them. In between, it is every frame heard of the other side.
    pub last: u64,
    /// How many they are.
    pub count: u64,
}

impl Message {
    /// Whether the relay heard it (rather than said it).
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.hop != self.to
    }
}

impl MessageKind {
    /// The word it has in a recording.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn of(name: &[u8]) -> Option<Self> {
        [Self::Request, Self::Notification, Self::Result, Self::Error]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }

    /// Whether it is an answer.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Result | Self::Error)
    }
}

impl Body {
    /// The bytes; none when they were left out.
    #[must_use]
    pub const fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Json(bytes) | Self::Text(bytes) | Self::Bytes(bytes) => Some(bytes),
            Self::Absent(_) => None,
        }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Absent(length) => *length,
            Self::Json(bytes) | Self::Text(bytes) | Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The body as a tree, when it is JSON.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.bytes()?).ok()
    }
}
