//! The line before each message of a link: JSON, then a line feed, then for data the bytes of the
//! message as they are.
//!
//! `{"t":"d","s":4711,"a":388}` is data number 4711, and acknowledges what came up to 388. Members
//! that are not known are ignored, and so are types, unless their name ends in `!`.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

/// The reason of an [`End`] that another process sends for a client that was killed.
pub const CLIENT_DIED: &str = "client_died";

/// Longest header, in bytes, with its line feed.
pub const MAX_HEADER: usize = 4096;
/// The least that counts as a limit for messages; no relay has a lower one.
const LEAST: u64 = 1024;

/// The header of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// A message of the conversation follows.
    Data {
        /// Its number, from 1.
        seq: u64,
        /// The number up to which the peer's messages were handled; 0 for none.
        ack: u64,
    },
    /// An acknowledgement alone.
    Ack {
        /// As in `Data`.
        ack: u64,
        /// The bytes that may be in flight unacknowledged.
        window: u64,
    },
    /// Asks for a `Pong` with the same number.
    Ping(u64),
    /// Answers a `Ping`.
    Pong(u64),
    /// Opens or resumes a link.
    Hello(Box<Hello>),
    /// Accepts a `Hello`.
    Welcome(Box<Welcome>),
    /// Refuses a `Hello`.
    Refuse(Box<Refusal>),
    /// The link ends in order, and cannot be resumed; the code and the reason are those of a
    /// WebSocket that is closed. The peer answers with the same, unless it has sent one already.
    End(Box<End>),
    /// A type that is not known, and may be ignored.
    Unknown,
}

/// A key to resume a link with. It is never logged: `Debug` does not show it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct ResumeKey(pub String);

/// What opens or resumes a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Hello {
    /// The versions of the protocol that the sender speaks.
    pub v: Vec<u32>,
    /// The link to resume; a new one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The peer's state of that link, as it named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    /// The number of this attachment, above those of all earlier ones.
    #[serde(rename = "gen")]
    pub generation: u64,
    /// The number that the sender expects next; 0 if it does not know and only ends the link.
    pub rx: u64,
    /// The key to resume with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ResumeKey>,
    /// The bytes that may be in flight to the sender unacknowledged.
    #[serde(rename = "win")]
    pub window: u64,
    /// The longest message of the conversation that the sender takes, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// What accepts a [`Hello`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Welcome {
    /// The version that both speak.
    pub v: u32,
    /// The link.
    pub link: String,
    /// The sender's state of it.
    pub epoch: String,
    /// The number of this attachment.
    #[serde(rename = "gen")]
    pub generation: u64,
    /// The number that the sender expects next.
    pub rx: u64,
    /// The key for the next resumption.
    pub key: ResumeKey,
    /// How long the link is kept without an attachment, in milliseconds.
    pub grace_ms: u64,
    /// As in [`Hello`].
    #[serde(rename = "win")]
    pub window: u64,
    /// Whether the link existed before.
    pub resumed: bool,
    /// As in [`Hello`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Whether nothing is known to be between the client and the relay that keeps the link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// The longest message that a peer takes which has announced this.
#[must_use]
pub fn longest(announced: Option<u64>) -> usize {
    let longest = announced.map(|longest| usize::try_from(longest.max(LEAST)));
    longest.and_then(Result::ok).unwrap_or(usize::MAX)
}

/// What refuses a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Refusal {
    /// Why.
    pub code: RefusalCode,
    /// The number that the sender expects next, so that the peer knows what was handled; 0 if it
    /// knows no such link.
    #[serde(default)]
    pub rx: u64,
    /// When to try again, in milliseconds; never without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The reason for people.
    #[serde(default)]
    pub detail: String,
}

impl Refusal {
    /// A refusal that does not depend on the numbers of a link.
    #[must_use]
    pub fn new(code: RefusalCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            rx: 0,
            retry_after_ms: None,
            detail: detail.into(),
        }
    }
}

/// Why a link is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The key is not that of the link, or the link is another principal's.
    Auth,
    /// There is no such link, or no longer.
    UnknownLink,
    /// The state of the link was lost.
    EpochChanged,
    /// A message that the peer needs is not kept, or was never sent.
    Gap,
    /// The generation is not above that of the current attachment.
    Busy,
    /// There is no common version.
    Version,
    /// The relay is shutting down.
    Draining,
    /// Too many links, or too many bytes in them.
    Limit,
    /// A code of a later version.
    #[serde(other)]
    Other,
}

/// The end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct End {
    /// The close code.
    pub code: u16,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Why a message has no valid header.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// No line feed in its first [`MAX_HEADER`] bytes.
    #[error("no line of at most {MAX_HEADER} bytes begins the message")]
    NoLine,
    /// It is not an object with the members of its type.
    #[error("the header is not valid: {0}")]
    Invalid(String),
    /// A type that must not be ignored.
    #[error("the type {0:?} is not known, and must not be ignored")]
    Unsupported(String),
    /// A message follows where none may.
    #[error("a message follows a header that is not of data")]
    Body,
    /// Numbers begin at 1, and the last one is not used.
    #[error("{0} is no number of a message")]
    Number(u64),
}

#[derive(Deserialize)]
struct Kind<'l> {
    #[serde(borrow)]
    t: Cow<'l, str>,
}

/// Members with their type.
#[derive(Serialize)]
struct Typed<'m, T> {
    t: &'static str,
    #[serde(flatten)]
    members: &'m T,
}

#[derive(Deserialize)]
struct DataMembers {
    s: u64,
    #[serde(default)]
    a: u64,
}

#[derive(Deserialize)]
struct AckMembers {
    a: u64,
    w: u64,
}

#[derive(Deserialize)]
struct NonceMember {
    n: u64,
}

impl fmt::Debug for ResumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResumeKey(…)")
    }
}

impl Header {
    /// Reads the header of a message, and where what follows it begins.
    ///
    /// # Errors
    /// The header is not valid, or something follows that may not.
    pub fn read(message: &[u8]) -> Result<(Self, usize), HeaderError> {
        if let Some(found) = read_usual(message) {
            return check_number(found);
        }
        let head = &message[..message.len().min(MAX_HEADER)];
        let end = memchr::memchr(b'\n', head).ok_or(HeaderError::NoLine)?;
        let header = Self::parse(&message[..end])?;
        let begin = end + 1;
        match header {
            Self::Data { .. } => check_number((header, begin)),
            _ if begin < message.len() && header != Self::Unknown => Err(HeaderError::Body),
            _ => Ok((header, begin)),
        }
    }

    fn parse(line: &[u8]) -> Result<Self, HeaderError> {
        let Kind { t: kind } = members(line)?;
        Ok(match &*kind {
            "d" => {
                let DataMembers { s, a } = members(line)?;
                Self::Data { seq: s, ack: a }
            }
            "a" => {
                let AckMembers { a, w } = members(line)?;
                Self::Ack { ack: a, window: w }
            }
            "p" => Self::Ping(members::<NonceMember>(line)?.n),
            "q" => Self::Pong(members::<NonceMember>(line)?.n),
            "hello" => Self::Hello(members(line)?),
            "welcome" => Self::Welcome(members(line)?),
            "refuse" => Self::Refuse(members(line)?),
            "x" => Self::End(members(line)?),
            other if other.ends_with('!') => {
                return Err(HeaderError::Unsupported(other.chars().take(32).collect()));
            }
            _ => Self::Unknown,
        })
    }

    /// Writes the header with its line feed.
    pub fn write(&self, to: &mut Vec<u8>) {
        // Writing to a vector does not fail.
        let _ = match self {
            Self::Data { seq, ack } => {
                write_data(*seq, *ack, to);
                Ok(())
            }
            Self::Ack { ack, window } => writeln!(to, r#"{{"t":"a","a":{ack},"w":{window}}}"#),
            Self::Ping(nonce) => writeln!(to, r#"{{"t":"p","n":{nonce}}}"#),
            Self::Pong(nonce) => writeln!(to, r#"{{"t":"q","n":{nonce}}}"#),
            Self::Hello(hello) => write_typed("hello", hello, to),
            Self::Welcome(welcome) => write_typed("welcome", welcome, to),
            Self::Refuse(refusal) => write_typed("refuse", refusal, to),
            Self::End(end) => write_typed("x", end, to),
            Self::Unknown => Ok(()),
        };
    }
}

/// Writes the header of data, without the machinery of formatting.
fn write_data(seq: u64, ack: u64, to: &mut Vec<u8>) {
    to.extend_from_slice(br#"{"t":"d","s":"#);
    write_number(seq, to);
    if ack > 0 {
        to.extend_from_slice(br#","a":"#);
        write_number(ack, to);
    }
    to.extend_from_slice(b"}\n");
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    to.extend_from_slice(&digits[at..]);
}

/// The header of data as [`Header::write`] makes it, without a JSON parser: it is in front of every
/// message.
fn read_usual(message: &[u8]) -> Option<(Header, usize)> {
    let rest = message.strip_prefix(br#"{"t":"d","s":"#)?;
    let (seq, rest) = read_number(rest)?;
    let (ack, rest) = match rest.strip_prefix(br#","a":"#) {
        Some(rest) => read_number(rest)?,
        None => (0, rest),
    };
    let body = rest.strip_prefix(b"}\n")?;
    Some((Header::Data { seq, ack }, message.len() - body.len()))
}

/// A number in decimal digits as JSON has it, without a sign, a fraction or a leading zero.
fn read_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    if digits.is_empty() || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    Some((number?, rest))
}

/// Rejects numbers that no message has.
fn check_number((header, begin): (Header, usize)) -> Result<(Header, usize), HeaderError> {
    match header {
        Header::Data { seq, .. } if seq == 0 || seq == u64::MAX => Err(HeaderError::Number(seq)),
        header => Ok((header, begin)),
    }
}

/// Parses the members of a header.
fn members<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Result<T, HeaderError> {
    serde_json::from_slice(line).map_err(|error| HeaderError::Invalid(error.to_string()))
}

fn write_typed(t: &'static str, members: &impl Serialize, to: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *to, &Typed { t, members })?;
    to.write_all(b"\n")
}
