//! What was made of a message, made again of those that differ from it in one value alone.
//!
//! An agent that streams says the same again and again, but for the text at the end. While rules
//! are at work that value is sealed, and whoever looks at it breaks the seal. Where nobody has, and
//! nothing else had a say, what comes of the next such message is known: the bytes that were made
//! before the value, its own, and those behind. Nothing is taken for granted: all other bytes are
//! compared. Not here: which messages begin alike (see `jsonrpc::Stem`), and the rules' work.

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

/// Most bytes besides the value, of what came and of what was made.
const MOST: usize = 4096;

/// The last member near a message's surface, sealed: what stands before it others share.
#[derive(Debug)]
pub struct Seal<'a> {
    /// Where its value lies in the frame.
    pub(super) span: Span,
    value: &'a [u8],
    broken: Cell<bool>,
    /// Where the value was written.
    written: Cell<Option<usize>>,
}

/// What was made of a message, and what others have to show for the same to be made of them.
#[derive(Debug)]
pub(super) struct Habit {
    /// What they begin with.
    stem: u64,
    /// What the value is.
    kind: Type,
    /// What they end with, behind the value.
    end: Box<[u8]>,
    /// What was made, before the value and behind it.
    parts: [Box<[u8]>; 2],
    /// Where the parts of what was made lie, and the value among them.
    at: Envelope,
    place: Span,
    fired: SmallVec<[Fired; 1]>,
    method: Name,
}

impl<'a> Seal<'a> {
    /// Of a message all of whose members have their names in its stem.
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

    /// What the value is, which those share that are treated alike.
    pub(super) fn kind(&self) -> Type {
        Type::of(self.value)
    }

    /// The value, for whoever wants to know what it is.
    pub(super) fn opened(&self) -> &'a [u8] {
        self.broken.set(true);
        self.value
    }

    /// Writes the value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.is_written(out.len());
        out.extend_from_slice(self.value);
    }

    /// The value is written at that place. That may be once.
    pub(super) fn is_written(&self, at: usize) {
        self.is_to_be_written();
        self.written.set(Some(at));
    }

    /// The message is written now. Who has written of it before has looked at what he wrote.
    pub(super) fn is_to_be_written(&self) {
        if self.written.get().is_some() {
            self.broken.set(true);
        }
    }

    /// Where the value stands in what was made, unless somebody has looked at it.
    fn place(&self) -> Option<Span> {
        let start = self.written.get().filter(|_| !self.broken.get())?;
        Some(Span::new(start, start + self.value.len()))
    }
}

impl Habit {
    /// What was made of a message, if others that differ in the sealed value become the same.
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

    /// What comes of another message, if it differs in that value alone.
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
    /// What comes of a notification, if that is known from one that was like it.
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
