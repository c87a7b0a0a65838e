//! What all export formats have in common.

use std::fmt;

use serde_json::value::RawValue;

use crate::chunk_run::ChunkRun;
use crate::text::duration;
use jsonrpc::{Envelope, Id, Kind, Limits, Scanned, Side, scan_text};
use recording::{Header, Message, RecordedEvent, find_lone};

/// A format in which a conversation is written.
pub(super) trait Format: fmt::Debug {
    /// Called before the first message.
    fn begin(&mut self, _header: &Header, _out: &mut Vec<u8>) {}
    /// Writes a message; `false` if the format cannot represent it.
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool;
    /// Writes a run of chunks, in a format that folds them.
    fn run(&mut self, _run: &ChunkRun, _out: &mut Vec<u8>) {}
    /// Writes any other event.
    fn event(&mut self, _event: &RecordedEvent, _out: &mut Vec<u8>) {}
    /// Called after the last message, with the header and the time of that message.
    fn end(&mut self, _header: &Header, _last: u64, _out: &mut Vec<u8>) {}
}

/// A message to export, with its parts.
pub(super) struct Exported<'a> {
    pub(super) event: &'a RecordedEvent,
    /// Its time, in microseconds since 1970.
    pub(super) at: u64,
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
        began: u64,
        took: Option<u64>,
    ) -> Option<Self> {
        let bytes = message.body.bytes()?;
        Some(Self {
            event,
            at: began + event.t,
            message,
            from: message.to.other(),
            bytes,
            duration: took,
        })
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
        match Id::at(self.envelope()?.id, self.bytes) {
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

    /// How long after its request it came, after this word; empty if it is no answer.
    pub(super) fn after(&self, word: &str) -> String {
        let after = self
            .duration
            .map(|micros| format!("{word}{}", duration(micros)));
        after.unwrap_or_default()
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
