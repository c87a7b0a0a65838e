//! What was made of a message, made again of those that differ from it in one value alone.
//!
//! An agent that streams says the same again and again, but for the text at the end. While rules
//! are at work that value is sealed, and whoever looks at it breaks the seal. Where nobody has, and
//! nothing else had a say, what comes of the next such message is known: the bytes that were made
//! before the value, its own, and those behind. Nothing is taken for granted: all other bytes are
//! compared. Not here: which messages begin alike (see `wire::Stem`), and the rules' work.

use std::cell::Cell;

use super::outcome::{Outcome, Pass};
use super::text::Type;
use crate::wire::{Envelope, Frame, Kind, Span};

/// What stands behind the value is remembered up to so many bytes.
const BEHIND: usize = 256;

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
    kind: Type,
    /// What they end with, behind the value.
    behind: Box<[u8]>,
    made: Outcome,
    /// Where the parts of what was made lie.
    at: Envelope,
    /// Where the value lies in it.
    place: Span,
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
        let ([_], Some(place)) = (&frames[..], seal.place()) else {
            return None;
        };
        let behind = &frame.as_bytes()[seal.span.end as usize..];
        let alone = made.back.is_empty() && made.notes.is_empty() && !made.depends;
        if !alone || known.kind != Kind::Notification || behind.len() > BEHIND {
            return None;
        }
        Some(Self {
            stem: at.stem.number,
            kind: seal.kind(),
            behind: behind.into(),
            made: made.clone(),
            at: known,
            place,
        })
    }

    /// The same of another message, if it differs in that value alone.
    pub(super) fn again(&self, frame: &Frame, at: &Envelope) -> Option<Outcome> {
        if at.stem.number != self.stem || !at.ends_in_stem() {
            return None;
        }
        let text = frame.as_bytes();
        let value = at.outline.as_ref()?.last()?.value;
        if text[value.end as usize..] != *self.behind || Type::of(value.of(text)) != self.kind {
            return None;
        }
        let Pass::Frames(frames) = &self.made.pass else {
            return None;
        };
        let told = frames[0].as_bytes();
        let parts = [
            &told[..self.place.start as usize],
            value.of(text),
            &told[self.place.end as usize..],
        ];
        let frame = Frame::from(parts.concat());
        u32::try_from(frame.len()).ok()?;
        Some(Outcome {
            pass: Pass::Frames(vec![frame]),
            known: Some(self.at.stretched(self.place, value.len())),
            fired: self.made.fired.clone(),
            method: self.made.method.clone(),
            ..Outcome::default()
        })
    }
}
