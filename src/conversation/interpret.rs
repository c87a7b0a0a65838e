//! Translates the messages of a side that uses a dialect, in both directions.
//!
//! Inside the conversation messages are canonical. `dialect_options` holds each side's translator.

use std::time::Instant;

use super::mind::Core;
use super::{Note, Outbox};
use crate::dialect::{self, Happened, Outcome, Pass};
use crate::jsonrpc::{Envelope, Fault, Frame, Kind, Limits, Shape, Side, scan};

impl Core {
    /// Takes a message of a side that does not use canonical ACP.
    pub(super) fn interpret(
        &mut self,
        from: Side,
        frame: Frame,
        at: &Envelope,
        now: Instant,
        out: &mut Outbox,
    ) {
        if self.speech.is_open(from) {
            self.recognise(from, &frame, at, out);
        }
        if self.speech.hears_as_is(from, &frame, at) && is_known(&frame, at) {
            self.message(from, frame, at, now, out);
            return;
        }
        let mut outcome = self.speech.read(from, &frame, at);
        let changed = !outcome.fired.is_empty();
        self.report(from, &mut outcome, out);
        if !changed {
            self.report_stranger(from, &frame, at, out);
        }
        for back in outcome.back {
            // It is in the sender's dialect already.
            self.hand_over(from, back, out);
        }
        match outcome.pass {
            Pass::Same => self.message(from, frame, at, now, out),
            Pass::Frames(frames) => self.hear_all(from, frames, outcome.known, now, out),
        }
    }

    /// Checks whether a message shows the dialect of its sender.
    fn recognise(&mut self, from: Side, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let asked = match at.kind {
            Kind::Result | Kind::Error => self.pending[from.other() as usize].method(at.id(frame)),
            Kind::Request | Kind::Notification => None,
        };
        if let Some(found) = self.speech.recognise(from, frame, at, asked) {
            out.note(Note::Recognised {
                side: from,
                dialect: found.dialect,
                by: found.by,
            });
        }
    }

    /// Sends a canonical message to a side that does not use canonical ACP.
    pub(super) fn say_translated(&mut self, to: Side, frame: Frame, out: &mut Outbox) {
        match scan(&frame, &self.limits) {
            Shape::One(at) => self.translate(to, frame, &at, out),
            Shape::Batch | Shape::Bad(_) => self.hand_over(to, frame, out),
        }
    }

    /// [`Conversation::send_translated`] for a message whose envelope is known.
    pub(super) fn translate(&mut self, to: Side, frame: Frame, at: &Envelope, out: &mut Outbox) {
        if self.speech.says_as_is(to, &frame, at) {
            self.hand_over(to, frame, out);
            return;
        }
        let mut outcome = self.speech.write(to, &frame, at);
        self.report(to, &mut outcome, out);
        match outcome.pass {
            Pass::Same => self.hand_over(to, frame, out),
            Pass::Frames(frames) => {
                for frame in frames {
                    self.hand_over(to, frame, out);
                }
            }
        }
        // An answer in place of `to`, which could not be asked in its dialect.
        self.returned
            .extend(outcome.back.into_iter().map(|frame| (to, frame)));
    }

    /// Takes the answers that translators have given in place of a side.
    pub(super) fn hear_returned(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((from, frame)) = self.returned.pop_front() {
            self.hear_all(from, vec![frame], None, now, out);
        }
    }

    /// Takes the output of a translator. `known` is the envelope, when there is one message and the
    /// translator knows it.
    fn hear_all(
        &mut self,
        from: Side,
        frames: Vec<Frame>,
        known: Option<Envelope>,
        now: Instant,
        out: &mut Outbox,
    ) {
        let known = known.filter(|_| frames.len() == 1);
        for frame in frames {
            let at = match known {
                Some(at) => {
                    debug_assert!(is_so(&frame, &at, &self.limits), "{frame:?} {at:?}");
                    at
                }
                None => match scan(&frame, &self.limits) {
                    Shape::One(at) => at,
                    // What a rule adds may be one level too deep.
                    Shape::Bad(flaw) => {
                        self.handle_flaw(from, flaw, now, out);
                        continue;
                    }
                    Shape::Batch => {
                        debug_assert!(false, "a rule made a batch: {frame:?}");
                        continue;
                    }
                },
            };
            self.message(from, frame, &at, now, out);
        }
    }

    /// Records what a translator did.
    fn report(&self, side: Side, outcome: &mut Outcome, out: &mut Outbox) {
        if !outcome.fired.is_empty() {
            out.note(Note::Translated {
                side,
                method: std::mem::take(&mut outcome.method),
                rules: std::mem::take(&mut outcome.fired),
            });
        }
        for note in outcome.notes.drain(..) {
            out.note(Note::Dialect {
                side,
                what: note.what,
                dialect: self.speech.dialect(side).to_owned(),
                rule: note.rule,
                detail: note.detail,
            });
        }
    }

    /// Records an unknown method, of a message that no rule has changed.
    fn report_stranger(&self, from: Side, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let calls = matches!(at.kind, Kind::Request | Kind::Notification);
        if !calls || is_known(frame, at) {
            return;
        }
        out.note(Note::Dialect {
            side: from,
            what: Happened::UnknownMethod,
            dialect: self.speech.dialect(from).to_owned(),
            rule: None,
            detail: "its method is not in the protocol".to_owned(),
        });
    }
}

/// Whether the protocol or an extension has its method.
fn is_known(frame: &Frame, at: &Envelope) -> bool {
    // Methods are hardly ever spelled with escapes.
    dialect::is_known_raw(at.raw_method(frame)) || dialect::is_known(&at.method(frame))
}

/// Whether `scan` finds the same.
fn is_so(frame: &Frame, at: &Envelope, limits: &Limits) -> bool {
    match scan(frame, limits) {
        Shape::One(found) => found == *at,
        Shape::Batch => false,
        // What a rule adds may be one level too deep.
        Shape::Bad(flaw) => matches!(flaw.fault, Fault::TooDeep { .. }),
    }
}
