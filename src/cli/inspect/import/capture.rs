//! The content of a capture, which every format is read into.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::cli::progress;
use jsonrpc::{Limits, Scanned, Side, scan_text};
use recording::{parse_json, peer_name};

/// The content of a capture.
#[derive(Debug, Default)]
pub(in crate::cli) struct Capture {
    /// The name of the format, for people.
    pub(super) format: &'static str,
    /// In microseconds since 1970; 0 if unknown.
    pub(in crate::cli) began: u64,
    /// The names of the peers in the capture.
    pub(in crate::cli) client: Option<String>,
    pub(in crate::cli) agent: Option<String>,
    pub(in crate::cli) items: Vec<Item>,
    /// Lines without an ACP message.
    pub(super) left_out: u64,
    /// Messages whose sender is unknown.
    pub(super) guessed: u64,
    /// Items that are no message.
    pub(super) odd: u64,
}

/// A message at one side of the relay.
#[derive(Debug)]
pub(in crate::cli) struct Item {
    /// In microseconds since the beginning.
    pub(super) t: u64,
    pub(super) hop: Side,
    pub(super) to: Side,
    /// It was forwarded unchanged.
    pub(super) passed: bool,
    pub(super) bytes: Vec<u8>,
}

impl Capture {
    /// A capture without messages.
    pub(in crate::cli) fn of(format: &'static str) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Reads a format whose lines have a message each, or something else.
    pub(super) fn of_lines(
        format: &'static str,
        text: &[u8],
        mut read: impl FnMut(&[u8]) -> serde_json::Result<Option<Item>>,
    ) -> Result<Self, String> {
        let mut capture = Self::of(format);
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            progress::advance(line.len() as u64);
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
    pub(in crate::cli) const fn unchanged(t: u64, to: Side, bytes: Vec<u8>) -> Self {
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
    pub(in crate::cli) fn of(line: &'a [u8]) -> serde_json::Result<Self> {
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
