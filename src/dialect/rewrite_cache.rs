//! Caches the rewriting of a message for messages that differ from it in one value only.
//!
//! An agent that streams sends almost the same message repeatedly; only the text at the end
//! changes. While rules are applied that value is lazy, and reading it is noted. If no rule has
//! read it, and the result does not depend on anything else, the result of the next such message is
//! known: the bytes made before the value, the new value, and the bytes after it. All other bytes
//! are compared. `jsonrpc::Prefix` finds messages that begin alike.

use std::cell::Cell;

use smallvec::SmallVec;

use super::message;
use super::method_name::MethodName;
use super::program::FiredRule;
use super::table::Way;
use super::text::JsonType;
use super::translation::{Forward, Translation};
use super::translator::Translator;
use crate::jsonrpc::{Envelope, Frame, Kind, Span};

/// Maximum number of bytes besides the value, of the message and of its translation.
const MAX_SIZE: usize = 4096;

/// The last member of a body or of one of its members, as a lazy value: what precedes it is shared
/// by other messages.
#[derive(Debug)]
pub struct LazyValue<'a> {
    /// The position of the value in the frame.
    pub(super) span: Span,
    value: &'a [u8],
    was_read: Cell<bool>,
    /// The position at which the value was written.
    written_at: Cell<Option<usize>>,
}

/// The result for a message, and the conditions under which it holds for another one.
#[derive(Debug)]
pub(super) struct RewriteCache {
    /// The prefix of these messages.
    prefix: u64,
    /// The type of the value.
    kind: JsonType,
    /// The bytes after the value.
    tail: Box<[u8]>,
    /// The bytes of the result, before and after the value.
    parts: [Box<[u8]>; 2],
    /// The positions of the parts of the result, and of the value in it.
    envelope: Envelope,
    value_span: Span,
    fired: SmallVec<[FiredRule; 1]>,
    method: MethodName,
}

impl<'a> LazyValue<'a> {
    /// For a message whose members all have their names in its prefix.
    pub(super) fn of(frame: &'a Frame, at: &Envelope) -> Option<Self> {
        if at.kind != Kind::Notification || at.unknown_members || !at.ends_in_prefix() {
            return None;
        }
        let span = at.index.as_ref()?.last()?.value;
        Some(Self {
            span,
            value: span.of(frame.as_bytes()),
            was_read: Cell::new(false),
            written_at: Cell::new(None),
        })
    }

    /// The type of the value, which messages that are treated alike share.
    pub(super) fn kind(&self) -> JsonType {
        JsonType::of(self.value)
    }

    /// Reads the value, and notes that it was read.
    pub(super) fn read(&self) -> &'a [u8] {
        self.was_read.set(true);
        self.value
    }

    /// Writes the value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.mark_written(out.len());
        out.extend_from_slice(self.value);
    }

    /// Notes the position at which the value is written. It may be written once.
    pub(super) fn mark_written(&self, at: usize) {
        self.begin_write();
        self.written_at.set(Some(at));
    }

    /// Notes that the message is written. If the value was written before, it counts as read.
    pub(super) fn begin_write(&self) {
        if self.written_at.get().is_some() {
            self.was_read.set(true);
        }
    }

    /// The position of the value in the result, unless it was read.
    fn written_span(&self) -> Option<Span> {
        let start = self.written_at.get().filter(|_| !self.was_read.get())?;
        Some(Span::new(start, start + self.value.len()))
    }
}

impl RewriteCache {
    /// Caches the result for a message, if others that differ only in the lazy value have the same
    /// one.
    pub(super) fn of(
        frame: &Frame,
        at: &Envelope,
        lazy: &LazyValue<'_>,
        outcome: &Translation,
    ) -> Option<Self> {
        let (Forward::Frames(frames), Some(known)) = (&outcome.forward, outcome.envelope) else {
            return None;
        };
        let ([sent], Some(place)) = (&frames[..], lazy.written_span()) else {
            return None;
        };
        let alone = outcome.replies.is_empty() && outcome.notes.is_empty() && !outcome.is_stateful;
        let value = place.len() as usize;
        let small = frame.len().max(sent.len()) - value <= MAX_SIZE;
        if !alone || !small || known.kind != Kind::Notification {
            return None;
        }
        let sent = sent.as_bytes();
        let behind = |text: &[u8], value: Span| text[value.end as usize..].into();
        Some(Self {
            prefix: at.prefix.number,
            kind: lazy.kind(),
            tail: behind(frame.as_bytes(), lazy.span),
            parts: [sent[..place.start as usize].into(), behind(sent, place)],
            envelope: known,
            value_span: place,
            fired: outcome.fired.clone(),
            method: outcome.method.clone(),
        })
    }

    /// The result for another message, if it differs in that value only.
    pub(super) fn apply(&self, frame: &Frame, at: &Envelope) -> Option<Translation> {
        if at.prefix.number != self.prefix || !at.ends_in_prefix() {
            return None;
        }
        let text = frame.as_bytes();
        let span = at.index.as_ref()?.last()?.value;
        let value = span.of(text);
        if text[span.end as usize..] != *self.tail || JsonType::of(value) != self.kind {
            return None;
        }
        let [before, behind] = &self.parts;
        let frame = Frame::from([before, value, behind].concat());
        u32::try_from(frame.len()).ok()?;
        Some(Translation {
            forward: Forward::Frames(vec![frame]),
            envelope: Some(self.envelope.resized(self.value_span, span.len())),
            fired: self.fired.clone(),
            method: self.method.clone(),
            ..Translation::default()
        })
    }
}

impl Translator {
    /// The result for a notification, if it is known from a similar one.
    pub(super) fn cached(&mut self, way: Way, frame: &Frame, at: &Envelope) -> Option<Translation> {
        let made = self.caches[way as usize].as_ref()?.apply(frame, at)?;
        if self.program.tracking.any() {
            let (frame, at) = match (way, &made.forward, &made.envelope) {
                (Way::Read, Forward::Frames(frames), Some(known)) => (&frames[0], known),
                _ => (frame, at),
            };
            let (tracking, from, method) = (
                self.program.tracking,
                self.from(way),
                MethodName::of(frame, at),
            );
            let body = message::body(frame, at);
            self.sessions
                .track(tracking, from, at.kind, &method, None, &body);
        }
        Some(made)
    }
}
