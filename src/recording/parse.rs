//! Parses one line of a recording.
//!
//! Unknown members and kinds are ignored, so that a file of the same version written by a newer
//! program can be read.

use bytes::Bytes;

use super::event::{
    Body, Event, Header, Message, MessageKind, Passed, Peer, Redaction, VERSION, What,
};
use super::tokens::members;
use super::write::{TAIL, checksum};
use crate::jsonrpc::Side;

/// The contents of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The header of a segment.
    Header(Box<Header>),
    /// An event.
    Event(Box<Event>),
    /// A line that cannot be used.
    Broken(Fault),
}

/// What is wrong with a line, or with its position in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
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

/// The members of a line or of an object in it.
#[derive(Default)]
struct Parts<'a> {
    members: Vec<(&'a [u8], &'a [u8])>,
}

/// Parses a line, with or without its line break.
#[must_use]
pub fn line(line: &Bytes) -> Found {
    match read(line) {
        Ok(found) => found,
        Err(fault) => Found::Broken(fault),
    }
}

fn read(line: &Bytes) -> Result<Found, Fault> {
    let line = match line.last() {
        Some(b'\n') => &line.slice(..line.len() - 1),
        _ => line,
    };
    check(line)?;
    let parts = Parts {
        members: members(line).map(|(name, at)| (name, &line[at])).collect(),
    };
    if let Some(version) = parts.number("acpr") {
        return match version {
            0 => Err(Fault::Malformed("version 0 never was")),
            1..=VERSION => Ok(Found::Header(Box::new(parts.header(version)))),
            newer => Err(Fault::Newer(newer)),
        };
    }
    let event = Event {
        n: parts
            .number("n")
            .ok_or(Fault::Malformed("it has no number `n`"))?,
        t: parts
            .micros("t")
            .ok_or(Fault::Malformed("it has no time `t`"))?,
        w: parts
            .micros("w")
            .ok_or(Fault::Malformed("it has no time `w`"))?,
        what: parts.what(line)?,
    };
    Ok(Found::Event(Box::new(event)))
}

/// Compares a line with its checksum.
fn check(line: &[u8]) -> Result<(), Fault> {
    let content = line
        .len()
        .checked_sub(TAIL)
        .ok_or(Fault::Malformed("it is too short for a checksum"))?;
    let (content, tail) = line.split_at(content);
    let found = tail
        .strip_prefix(b",\"crc\":\"")
        .and_then(|rest| rest.strip_suffix(b"\"}"))
        .ok_or_else(|| {
            Fault::Malformed(if line.ends_with(b"\r") {
                "it ends with CR LF: line breaks were changed on the way, as git's autocrlf does"
            } else {
                "it does not end with its checksum"
            })
        })?;
    let expected = checksum(content);
    if found == expected {
        return Ok(());
    }
    let shown = |digits: &[u8]| String::from_utf8_lossy(digits).escape_debug().collect();
    Err(Fault::Checksum {
        found: shown(found),
        expected: shown(&expected),
    })
}

impl<'a> Parts<'a> {
    fn get(&self, name: &str) -> Option<&'a [u8]> {
        let named = |(known, _): &&(&[u8], &'a [u8])| *known == name.as_bytes();
        self.members.iter().find(named).map(|(_, value)| *value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        std::str::from_utf8(self.get(name)?).ok()?.parse().ok()
    }

    fn micros(&self, name: &str) -> Option<u64> {
        micros(self.get(name)?)
    }

    /// A string; lone surrogates, which a Rust string cannot hold, are replaced.
    fn text(&self, name: &str) -> Option<String> {
        let value = self.get(name)?;
        (value.first() == Some(&b'"')).then(|| {
            serde_json::from_slice(value)
                .unwrap_or_else(|_| String::from_utf8_lossy(value).trim_matches('"').to_owned())
        })
    }

    fn said(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        self.get(name)
            .and_then(|value| serde_json::from_slice(value).ok())
            .unwrap_or_default()
    }

    fn side(&self) -> Result<Side, Fault> {
        match self.get("h") {
            Some(b"\"client\"") => Ok(Side::Client),
            Some(b"\"agent\"") => Ok(Side::Agent),
            _ => Err(Fault::Malformed("its edge `h` is neither client nor agent")),
        }
    }

    fn within(&self, name: &str) -> Self {
        let line = self.get(name).unwrap_or_default();
        Self {
            members: members(line).map(|(name, at)| (name, &line[at])).collect(),
        }
    }

    fn header(&self, version: u64) -> Header {
        let peer = |name| {
            let peer = self.within(name);
            Peer {
                name: peer.said("name"),
                dialect: peer.said("dialect"),
            }
        };
        let redact = self.within("redact");
        Header {
            version,
            id: self.said("id"),
            segment: self.number("seg").unwrap_or(0),
            first: self.number("first").unwrap_or(1),
            began: self.micros("began").unwrap_or(0),
            by: self.said("by"),
            client: peer("client"),
            agent: peer("agent"),
            tables: self.text("tables"),
            policy: self.said("policy"),
            redaction: Redaction {
                mode: redact.said("mode"),
                rules: redact.said("rules"),
                key: redact.said("key"),
            },
            previous: self.text("prev"),
        }
    }

    fn what(&self, line: &Bytes) -> Result<What, Fault> {
        let kind = self
            .text("k")
            .ok_or(Fault::Malformed("it has no kind `k`"))?;
        Ok(match kind.as_str() {
            "msg" => What::Message(Box::new(self.message(line)?)),
            "passed" => What::Passed(Passed {
                to: self.side()?,
                first: self.needed("from")?,
                last: self.needed("to")?,
                count: self.needed("count")?,
            }),
            "stderr" => What::Stderr(self.body(line)?),
            "proc" => What::Process {
                event: self.said("ev"),
                what: self.said("what"),
            },
            "link" => What::Link {
                side: self.side()?,
                event: self.said("ev"),
                what: self.said("what"),
            },
            "note" => What::Note {
                name: self.said("name"),
                text: self.said("text"),
                of: self.number("of"),
            },
            "gap" => What::Gap {
                events: self.needed("events")?,
                bytes: self.number("bytes").unwrap_or(0),
                why: self.said("why"),
            },
            "clock" => What::Clock {
                jump: self.jump().ok_or(Fault::Malformed("it has no `jump`"))?,
            },
            "mark" => What::Mark(self.said("text")),
            "resume" => What::Resume,
            "rotate" | "end" => What::End {
                rotated: kind == "rotate",
                why: self.said("why"),
                digest: self.said("b3"),
            },
            _ => What::Other {
                kind,
                line: line.clone(),
            },
        })
    }

    fn needed(&self, name: &str) -> Result<u64, Fault> {
        self.number(name).ok_or(Fault::Malformed(
            "a number that belongs to its kind is missing",
        ))
    }

    fn jump(&self) -> Option<i64> {
        let value = self.get("jump")?;
        match value.strip_prefix(b"-") {
            Some(value) => Some(-i64::try_from(micros(value)?).ok()?),
            None => i64::try_from(micros(value)?).ok(),
        }
    }

    fn message(&self, line: &Bytes) -> Result<Message, Fault> {
        let id = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let kind = self.get("is").map(<[u8]>::trim_ascii);
        Ok(Message {
            hop: self.side()?,
            to: match self.get("d") {
                Some(b"\"<\"") => Side::Client,
                Some(b"\">\"") => Side::Agent,
                _ => return Err(Fault::Malformed("its direction `d` is neither < nor >")),
            },
            id: self.get("id").map(id),
            method: self.text("me"),
            session: self.text("s"),
            kind: kind
                .and_then(|word| MessageKind::of(word.strip_prefix(b"\"")?.strip_suffix(b"\"")?)),
            answers: self.number("re"),
            of: self.number("of"),
            rules: self.texts("rules"),
            patch: self
                .get("p")
                .and_then(|patch| serde_json::from_slice(patch).ok()),
            redacted: self.texts("rd"),
            body: self.body(line)?,
        })
    }

    fn body(&self, line: &Bytes) -> Result<Body, Fault> {
        if let Some(json) = self.get("m") {
            return Ok(Body::Json(line.slice_ref(json)));
        }
        if let Some(length) = self.number("z") {
            return Ok(Body::Absent(length));
        }
        if let Some(text) = self.get("b") {
            let text: String =
                serde_json::from_slice(text).map_err(|_| Fault::Malformed("its `b` is no text"))?;
            return Ok(Body::Text(text.into()));
        }
        let encoded = self
            .get("x")
            .and_then(|text| text.strip_prefix(b"\"")?.strip_suffix(b"\""))
            .ok_or(Fault::Malformed("it has no body"))?;
        data_encoding::BASE64
            .decode(encoded)
            .map(|bytes| Body::Bytes(bytes.into()))
            .map_err(|_| Fault::Malformed("its `x` is no base64"))
    }
}

/// Converts seconds with up to six decimals to microseconds.
fn micros(seconds: &[u8]) -> Option<u64> {
    let seconds = std::str::from_utf8(seconds).ok()?;
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = part.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > 6 || !digits {
        return None;
    }
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Found {
        let sum = checksum(content.as_bytes());
        let sum = String::from_utf8_lossy(&sum).into_owned();
        line(&Bytes::from(format!("{content},\"crc\":\"{sum}\"}}")))
    }

    /// A damaged or malicious line may still have a valid checksum.
    #[test]
    fn a_kind_that_is_no_word_is_none() {
        for (is, kind) in [
            ("\"request\"", Some(MessageKind::Request)),
            (" \"request\" ", Some(MessageKind::Request)),
            ("\u{c}", None),
            ("\"", None),
            ("\"\"", None),
            ("7", None),
        ] {
            let content = r#"{"n":1,"t":0,"w":0,"k":"msg","h":"agent","d":"<","m":{},"is":"#;
            let Found::Event(event) = read(&format!("{content}{is}")) else {
                panic!("{is:?} is an event");
            };
            let What::Message(message) = event.what else {
                panic!("{is:?} is of a message");
            };
            assert_eq!(message.kind, kind, "{is:?}");
        }
    }
}
