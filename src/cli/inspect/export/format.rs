//! What all export formats have in common.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::jsonrpc::{Envelope, Id, Kind, Limits, Scanned, Side, scan_text};
use crate::recording::{Header, Message, RecordedEvent, find_lone};

/// A format in which a conversation is written.
pub(super) trait Format {
    /// Called before the first message.
    fn begin(&mut self, _header: &Header, _out: &mut Vec<u8>) {}
    /// Writes a message; `false` if the format cannot represent it.
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool;
    /// Writes any other event.
    fn event(&mut self, _event: &RecordedEvent, _out: &mut Vec<u8>) {}
    /// Called after the last message.
    fn end(&mut self, _out: &mut Vec<u8>) {}
}

/// A message to export, with its parts.
#[derive(Debug)]
pub(super) struct Exported<'a> {
    pub(super) event: &'a RecordedEvent,
    pub(super) message: &'a Message,
    pub(super) from: Side,
    /// The recorded bytes.
    pub(super) bytes: &'a [u8],
    /// Microseconds since the request, if this is its answer.
    pub(super) duration: Option<u64>,
}

impl<'a> Exported<'a> {
    /// `None` if the body was not recorded.
    pub(super) fn new(
        event: &'a RecordedEvent,
        message: &'a Message,
        took: Option<u64>,
    ) -> Option<Self> {
        let bytes = message.body.bytes()?;
        Some(Self {
            event,
            message,
            from: message.to.other(),
            bytes,
            duration: took,
        })
    }

    /// Seconds since the recording began.
    pub(super) fn seconds(&self) -> f64 {
        self.event.t as f64 / 1e6
    }

    /// The frame as a JSON value; `None` if it is no JSON, or JSON that many readers reject.
    pub(super) fn raw(&self) -> Option<&RawValue> {
        serde_json::from_slice(self.bytes)
            .ok()
            .filter(|_| self.has_no_surrogate())
    }

    /// The params, the result or the error, likewise; `null` if there is none.
    pub(super) fn body(&self) -> Option<&RawValue> {
        let body = self.envelope()?.body;
        let body = body.map_or(&b"null"[..], |span| span.of(self.bytes));
        serde_json::from_slice(body)
            .ok()
            .filter(|_| self.has_no_surrogate())
    }

    /// The id, as spelled; `None` if many readers reject it.
    pub(super) fn id(&self) -> Option<&RawValue> {
        match self.envelope()?.id.of(self.bytes) {
            Id::Absent => None,
            Id::Null => serde_json::from_str("null").ok(),
            Id::Number(text) | Id::String(text) => serde_json::from_slice(text)
                .ok()
                .filter(|_| find_lone(text).is_none()),
        }
    }

    fn envelope(&self) -> Option<Envelope> {
        match scan_text(self.bytes, &Limits::default()) {
            Scanned::Message(envelope) => Some(envelope),
            _ => None,
        }
    }

    pub(super) const fn kind(&self) -> Option<Kind> {
        self.message.kind
    }

    pub(super) fn method(&self) -> &str {
        self.message.method.as_deref().unwrap_or_default()
    }

    /// Whether it has no lone surrogate.
    fn has_no_surrogate(&self) -> bool {
        find_lone(self.bytes).is_none()
    }
}

/// A JSON object that is written member by member, so that values keep their spelling:
/// `serde_json::Value` would reject `1e999` and deep nesting.
pub(super) struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a member.
    pub(super) fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.push(name, &value.into().to_string())
    }

    /// Adds a member if there is a value.
    pub(super) fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a member with its original spelling, or `null`.
    pub(super) fn with_raw(self, name: &str, value: Option<&RawValue>) -> Self {
        self.push(name, value.map_or("null", RawValue::get))
    }

    fn push(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0
            .extend_from_slice(Value::from(name).to_string().as_bytes());
        self.0.push(b':');
        // An object is one line; a JSON string has no raw line breaks.
        let in_line = |byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                byte
            }
        };
        self.0.extend(value.bytes().map(in_line));
        self
    }

    /// Appends the object to `out`.
    pub(super) fn end(mut self, out: &mut Vec<u8>) {
        out.append(&mut self.0);
        out.push(b'}');
    }
}
