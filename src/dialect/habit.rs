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
use super::name::Name;
use super::outcome::{Outcome, Pass};
use super::program::Fired;
use super::table::Way;
use super::text::Type;
use super::translate::Translator;
use crate::jsonrpc::{Envelope, Frame, Kind, Span};

/// Maximum number of bytes besides the value, of the message and of its translation.
const MOST: usize = 4096;

/// The last member of a body or of one of its members, as a lazy value: what precedes it is shared
/// by other messages.
#[derive(Debug)]
pub struct Seal<'a> {
    /// The position of the value in the frame.
    pub(super) span: Span,
    value: &'a [u8],
    broken: Cell<bool>,
    /// The position at which the value was written.
    written: Cell<Option<usize>>,
}

/// The result for a message, and the conditions under which it holds for another one.
#[derive(Debug)]
pub(super) struct Habit {
    /// The prefix of these messages.
    stem: u64,
    /// The type of the value.
    kind: Type,
    /// The bytes after the value.
    end: Box<[u8]>,
    /// The bytes of the result, before and after the value.
    parts: [Box<[u8]>; 2],
    /// The positions of the parts of the result, and of the value in it.
    at: Envelope,
    place: Span,
    fired: SmallVec<[Fired; 1]>,
    method: Name,
}

impl<'a> Seal<'a> {
    /// For a message whose members all have their names in its prefix.
    pub(super) fn of(frame: &'a Frame, at: &Envelope) -> Option<Self> {
        if at.kind != Kind::Notification || at.strangers || !at.ends_in_stem() {
            return None;
        }
        let span = at.outline.as_ref()?.last()?.value;
        Some(Self {
            span,
            value: span.of(frame.as_bytes()),
            broken: Cell::new(false),
            written: Cell::new(None),
        })
    }

    /// The type of the value, which messages that are treated alike share.
    pub(super) fn kind(&self) -> Type {
        Type::of(self.value)
    }

    /// Reads the value, and notes that it was read.
    pub(super) fn opened(&self) -> &'a [u8] {
        self.broken.set(true);
        self.value
    }

    /// Writes the value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.is_written(out.len());
        out.extend_from_slice(self.value);
    }

    /// Notes the position at which the value is written. It may be written once.
    pub(super) fn is_written(&self, at: usize) {
        self.is_to_be_written();
        self.written.set(Some(at));
    }

    /// Notes that the message is written. If the value was written before, it counts as read.
    pub(super) fn is_to_be_written(&self) {
        if self.written.get().is_some() {
            self.broken.set(true);
        }
    }

    /// The position of the value in the result, unless it was read.
    fn place(&self) -> Option<Span> {
        let start = self.written.get().filter(|_| !self.broken.get())?;
        Some(Span::new(start, start + self.value.len()))
    }
}

impl Habit {
    /// Caches the result for a message, if others that differ only in the lazy value have the same
    /// one.
    pub(super) fn of(
        frame: &Frame,
        at: &Envelope,
        seal: &Seal<'_>,
        made: &Outcome,
    ) -> Option<Self> {
        let (Pass::Frames(frames), Some(known)) = (&made.pass, made.known) else {
            return None;
        };
        let ([told], Some(place)) = (&frames[..], seal.place()) else {
            return None;
        };
        let alone = made.back.is_empty() && made.notes.is_empty() && !made.depends;
        let value = place.len() as usize;
        let small = frame.len().max(told.len()) - value <= MOST;
        if !alone || !small || known.kind != Kind::Notification {
            return None;
        }
        let told = told.as_bytes();
        let behind = |text: &[u8], value: Span| text[value.end as usize..].into();
        Some(Self {
            stem: at.stem.number,
            kind: seal.kind(),
            end: behind(frame.as_bytes(), seal.span),
            parts: [told[..place.start as usize].into(), behind(told, place)],
            at: known,
            place,
            fired: made.fired.clone(),
            method: made.method.clone(),
        })
    }

    /// The result for another message, if it differs in that value only.
    pub(super) fn again(&self, frame: &Frame, at: &Envelope) -> Option<Outcome> {
        if at.stem.number != self.stem || !at.ends_in_stem() {
            return None;
        }
        let text = frame.as_bytes();
        let span = at.outline.as_ref()?.last()?.value;
        let value = span.of(text);
        if text[span.end as usize..] != *self.end || Type::of(value) != self.kind {
            return None;
        }
        let [before, behind] = &self.parts;
        let frame = Frame::from([before, value, behind].concat());
        u32::try_from(frame.len()).ok()?;
        Some(Outcome {
            pass: Pass::Frames(vec![frame]),
            known: Some(self.at.stretched(self.place, span.len())),
            fired: self.fired.clone(),
            method: self.method.clone(),
            ..Outcome::default()
        })
    }
}

impl Translator {
    /// The result for a notification, if it is known from a similar one.
    pub(super) fn again(&mut self, way: Way, frame: &Frame, at: &Envelope) -> Option<Outcome> {
        let made = self.habits[way as usize].as_ref()?.again(frame, at)?;
        if self.program.watch.any() {
            let (frame, at) = match (way, &made.pass, &made.known) {
                (Way::Read, Pass::Frames(frames), Some(known)) => (&frames[0], known),
                _ => (frame, at),
            };
            let (watch, from, method) = (self.program.watch, self.from(way), Name::of(frame, at));
            let body = message::body(frame, at);
            self.sessions
                .see(watch, from, at.kind, &method, None, &body);
        }
        Some(made)
    }
}
