//! The content of a capture, which every format is read into.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use jsonrpc::{Limits, Scanned, Side, scan_text};
use recording::{parse_json, peer_name};

/// The content of a capture.
#[derive(Debug, Default)]
pub struct Capture {
    /// The name of the format, for people.
    pub format: &'static str,
    /// In microseconds since 1970; 0 if unknown.
    pub began: u64,
    /// The names of the peers in the capture.
    pub client: Option<String>,
    /// Likewise.
    pub agent: Option<String>,
    /// What was captured, in order.
    pub items: Vec<Item>,
    /// Lines without an ACP message.
    pub left_out: u64,
    /// Messages whose sender is unknown.
    pub guessed: u64,
    /// Items that are no message.
    pub odd: u64,
}

/// A message at one side of the relay.
#[derive(Debug)]
pub struct Item {
    /// In microseconds since the beginning.
    pub t: u64,
    /// The side of the relay at which it was seen.
    pub hop: Side,
    /// The side that it is for.
    pub to: Side,
    /// It was forwarded unchanged.
    pub passed: bool,
    /// As they were captured.
    pub bytes: Vec<u8>,
}

impl Capture {
    /// A capture without messages.
    pub(super) fn of(format: &'static str) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Reads a format whose lines have a message each, or something else.
    pub(super) fn of_lines(
        format: &'static str,
        text: &[u8],
        advance: fn(u64),
        mut read: impl FnMut(&[u8]) -> serde_json::Result<Option<Item>>,
    ) -> Result<Self, String> {
        let mut capture = Self::of(format);
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            advance(line.len() as u64);
            if line.trim_ascii().is_empty() {
                continue;
            }
            let item = read(line).map_err(|error| format!("line {}: {error}", at + 1))?;
            capture.left_out += u64::from(item.is_none());
            capture.items.extend(item);
        }
        Ok(capture)
    }

    /// Names the peers that the format does not name, from `initialize` and its answer.
    pub(super) fn name_peers(&mut self) {
        for (name, from) in [
            (&mut self.client, Side::Client),
            (&mut self.agent, Side::Agent),
        ] {
            if name.is_none() {
                *name = self.items.iter().find_map(|item| name_in(item, from));
            }
        }
    }
}

impl Item {
    /// A message that was sent by one side and received by the other unchanged.
    pub const fn unchanged(t: u64, to: Side, bytes: Vec<u8>) -> Self {
        Self {
            t,
            hop: to.other(),
            to,
            passed: true,
            bytes,
        }
    }

    pub(super) fn is_message(&self) -> bool {
        let shape = scan_text(&self.bytes, &Limits::default());
        matches!(shape, Scanned::Message(_) | Scanned::Batch)
    }
}

/// The parts of a message that a format has as members of a line.
pub(super) struct Parts<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Parts<'a> {
    pub(super) fn of(line: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line).map(Self)
    }

    /// The member as it is spelled, or `null`.
    pub(super) fn raw(&self, name: &str) -> &'a str {
        self.0.get(name).map_or("null", |value| value.get())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }

    /// The message of this kind: `request`, `notification`, or the member of an answer.
    pub(super) fn message(&self, kind: &str, body: &str) -> Vec<u8> {
        let (id, method) = (self.raw("id"), self.raw("method"));
        let params = match body {
            "null" => String::new(),
            body => format!(r#","params":{body}"#),
        };
        let rest = match kind {
            "request" => format!(r#""id":{id},"method":{method}{params}"#),
            "notification" => format!(r#""method":{method}{params}"#),
            answer => format!(r#""id":{id},"{answer}":{body}"#),
        };
        format!(r#"{{"jsonrpc":"2.0",{rest}}}"#).into_bytes()
    }
}

/// Seconds or fractions of them, in microseconds.
pub(super) fn micros(value: f64, unit: f64) -> u64 {
    // The cast saturates negative and excessive times.
    (value * unit).round() as u64
}

/// The name and version of `from` in this message.
fn name_in(item: &Item, from: Side) -> Option<String> {
    if item.to == from || memchr::memmem::find(&item.bytes, b"protocolVersion").is_none() {
        return None;
    }
    let message = parse_json(&item.bytes)?;
    // The result needs no request: no other result has this member.
    let is_own = from == Side::Agent || message["method"] == "initialize";
    peer_name(from, &message, &["name"]).filter(|_| is_own)
}
