//! Parses one line of a recording.
//!
//! Unknown members and kinds are ignored, so that a file of the same version written by a newer
//! program can be read.

use bytes::Bytes;
use serde::Deserialize;

use super::event::{EventKind, Header, Message, Payload, RecordedEvent, VERSION};
use super::seconds;
use super::write::{TAIL, checksum};
use jsonrpc::text::members;
use jsonrpc::{Kind, Side};

/// The latest time of an event, in microseconds since the recording began: a century.
const MAX_TIME: u64 = 100 * 366 * 24 * 60 * 60 * 1_000_000;

/// The contents of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// The header of a segment.
    Header(Box<Header>),
    /// An event.
    Event(Box<RecordedEvent>),
    /// A line that cannot be used.
    Invalid(LineError),
}

impl Parsed {
    /// The event, if it is one.
    #[must_use]
    pub fn event(&self) -> Option<&RecordedEvent> {
        match self {
            Self::Event(event) => Some(event),
            _ => None,
        }
    }

    /// The same.
    #[must_use]
    pub fn into_event(self) -> Option<RecordedEvent> {
        match self {
            Self::Event(event) => Some(*event),
            _ => None,
        }
    }
}

/// What is wrong with a line, or with its position in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It has no line break: the writer was interrupted.
    #[error("the last line is torn after {bytes} bytes; what came before it is whole")]
    Torn {
        /// The number of bytes that were written.
        bytes: u64,
    },
    /// The checksum does not match the bytes.
    #[error("the checksum is {found}, the line's own is {expected}: it was changed or damaged")]
    Checksum {
        /// The checksum in the line.
        found: String,
        /// The checksum of its bytes.
        expected: String,
    },
    /// It does not have the form of a recording's line.
    #[error("this is no line of a recording: {0}")]
    Malformed(&'static str),
    /// It was written by a later version of the format.
    #[error(
        "this is version {0} of the format, and {VERSION} is the latest known here: use a newer acp-relay"
    )]
    Newer(u64),
    /// It exceeds the length limit.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: u64,
    },
}

/// The members of a line.
struct Members<'a>(Vec<(&'a [u8], &'a [u8])>);

/// Parses a line, with or without its line break.
#[must_use]
pub fn parse_line(line: &Bytes) -> Parsed {
    read(line).unwrap_or_else(Parsed::Invalid)
}

fn read(line: &Bytes) -> Result<Parsed, LineError> {
    let line = match line.last() {
        Some(b'\n') => &line.slice(..line.len() - 1),
        _ => line,
    };
    check(line)?;
    let members = Members(members(line).collect());
    if let Some(version) = members.read("acpr") {
        return match version {
            0 => Err(LineError::Malformed("version 0 never was")),
            1..=VERSION => match serde_json::from_slice(line) {
                Ok(header) => Ok(Parsed::Header(Box::new(header))),
                Err(_) => Err(LineError::Malformed(
                    "a member of the header has another type",
                )),
            },
            newer => Err(LineError::Newer(newer)),
        };
    }
    let (n, t, w) = (members.read("n"), members.micros("t"), members.micros("w"));
    let (Some(n), Some(t), Some(w)) = (n, t, w) else {
        let what = "it has no number `n`, or no time `t` or `w`";
        return Err(LineError::Malformed(what));
    };
    if t > MAX_TIME {
        return Err(LineError::Malformed("its time `t` is beyond a century"));
    }
    let kind = members.kind(line)?;
    if let EventKind::Passed(passed) = &kind
        && (passed.first > passed.last || passed.last >= n)
    {
        let what = "it has forwarded frames that are not before it: `from` is above `to`, or `to` is \
                    not below `n`";
        return Err(LineError::Malformed(what));
    }
    Ok(Parsed::Event(Box::new(RecordedEvent { n, t, w, kind })))
}

/// Compares a line with its checksum.
fn check(line: &[u8]) -> Result<(), LineError> {
    let Some(content) = line.len().checked_sub(TAIL) else {
        return Err(LineError::Malformed("it is too short for a checksum"));
    };
    let (content, tail) = line.split_at(content);
    let found = tail.strip_prefix(b",\"crc\":\"");
    let Some(found) = found.and_then(|rest| rest.strip_suffix(b"\"}")) else {
        return Err(LineError::Malformed(match line.last() {
            Some(b'\r') => {
                "it ends with CR LF: line breaks were changed on the way, as git's autocrlf does"
            }
            _ => "it does not end with its checksum",
        }));
    };
    let expected = checksum(content);
    if found == expected {
        return Ok(());
    }
    let shown = |digits: &[u8]| String::from_utf8_lossy(digits).escape_debug().collect();
    Err(LineError::Checksum {
        found: shown(found),
        expected: shown(&expected),
    })
}

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&'a [u8]> {
        let mut list = self.0.iter();
        Some(list.find(|(known, _)| *known == name.as_bytes())?.1)
    }

    /// A value of that type, if the member has one.
    fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(self.get(name)?).ok()
    }

    fn micros(&self, name: &str) -> Option<u64> {
        seconds::parse(self.get(name)?)
    }

    /// A string; lone surrogates, which a Rust string cannot hold, are replaced.
    fn text(&self, name: &str) -> Option<String> {
        let value = self.get(name)?;
        (value.first() == Some(&b'"')).then(|| {
            serde_json::from_slice(value)
                .unwrap_or_else(|_| String::from_utf8_lossy(value).trim_matches('"').to_owned())
        })
    }

    fn kind(&self, line: &Bytes) -> Result<EventKind, LineError> {
        let kind = self
            .text("k")
            .ok_or(LineError::Malformed("it has no kind `k`"))?;
        let text_or_empty = |name| self.text(name).unwrap_or_default();
        Ok(match kind.as_str() {
            "msg" => EventKind::Message(Box::new(self.message(line)?)),
            "stderr" => EventKind::Stderr(self.body(line)?),
            "mark" => EventKind::Mark(text_or_empty("text")),
            "rotate" | "end" => EventKind::End {
                rotated: kind == "rotate",
                reason: text_or_empty("why"),
                digest: text_or_empty("b3"),
            },
            "passed" | "proc" | "link" | "note" | "gap" | "clock" | "resume" => {
                serde_json::from_slice(line).map_err(|_| {
                    LineError::Malformed("a member that belongs to its kind is missing or wrong")
                })?
            }
            _ => EventKind::Other {
                kind,
                line: line.clone(),
            },
        })
    }

    fn message(&self, line: &Bytes) -> Result<Message, LineError> {
        let id = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        Ok(Message {
            edge: self.read("h").ok_or(LineError::Malformed(
                "its edge `h` is neither client nor agent",
            ))?,
            to: match self.get("d") {
                Some(b"\"<\"") => Side::Client,
                Some(b"\">\"") => Side::Agent,
                _ => return Err(LineError::Malformed("its direction `d` is neither < nor >")),
            },
            id: self.get("id").map(id),
            method: self.text("me"),
            session: self.text("s"),
            kind: self
                .read("is")
                .and_then(|name: &str| Kind::from_name(name.as_bytes())),
            answers: self.read("re"),
            source: self.read("of"),
            rules: self.read("rules").unwrap_or_default(),
            patch: self.read("p"),
            redacted: self.read("rd").unwrap_or_default(),
            body: self.body(line)?,
        })
    }

    fn body(&self, line: &Bytes) -> Result<Payload, LineError> {
        if let Some(json) = self.get("m") {
            return Ok(Payload::Json(line.slice_ref(json)));
        }
        if let Some(length) = self.read("z") {
            return Ok(Payload::Omitted(length));
        }
        if let Some(text) = self.get("b") {
            let text: String = serde_json::from_slice(text)
                .map_err(|_| LineError::Malformed("its `b` is no text"))?;
            return Ok(Payload::Text(text.into()));
        }
        let encoded = self
            .get("x")
            .and_then(|text| text.strip_prefix(b"\"")?.strip_suffix(b"\""))
            .ok_or(LineError::Malformed("it has no body"))?;
        data_encoding::BASE64
            .decode(encoded)
            .map(|bytes| Payload::Bytes(bytes.into()))
            .map_err(|_| LineError::Malformed("its `x` is no base64"))
    }
}
