//! Translates the messages of a side that uses a dialect, in both directions.
//!
//! Inside the conversation messages are canonical. `dialect_options` holds each side's translator.

use super::state::Conversation;
use super::{Note, Outbox};
use dialect::{self, DialectEvent, Forward, Translation, Way};
use jsonrpc::{Envelope, Frame, Kind, Scanned, Side, scan};

impl Conversation {
    /// Takes a message of a side that does not use canonical ACP.
    pub(super) fn translate_in(
        &mut self,
        from: Side,
        frame: Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) {
        if self.dialects.is_detecting(from) {
            self.detect(from, &frame, at, out);
        }
        if !self.dialects.concerns(from, Way::Read, &frame, at) {
            self.note_unknown_method(from, &frame, at, out);
            return self.handle_message(from, frame, at, out);
        }
        let mut outcome = self.dialects.read(from, &frame, at);
        let changed = !outcome.fired.is_empty();
        self.note_outcome(from, &mut outcome, out);
        if !changed {
            self.note_unknown_method(from, &frame, at, out);
        }
        match &outcome.forward {
            Forward::Unchanged => {
                self.queue_all(from, outcome.replies, out);
                self.handle_message(from, frame, at, out);
            }
            Forward::Frames(_) => self.take_translation(from, outcome, out),
        }
    }

    /// Passes on what was made of a message of `from`, or instead of one.
    pub(super) fn take_translation(&mut self, from: Side, outcome: Translation, out: &mut Outbox) {
        self.queue_all(from, outcome.replies, out);
        if let Forward::Frames(frames) = outcome.forward {
            self.handle_all(from, frames, out);
        }
    }

    /// Queues what is in the dialect of `to` already.
    fn queue_all(&mut self, to: Side, frames: Vec<Frame>, out: &mut Outbox) {
        for frame in frames {
            self.queue(to, frame, out);
        }
    }

    /// Bounds what the translations remember. What they cannot forget is for requests that are open,
    /// so more of it ends the conversation.
    pub(super) fn bound_translation(&mut self, out: &mut Outbox) {
        let limit = self.limits.translation_bytes;
        let Some((forgotten, is_too_much)) = self.dialects.bound(limit) else {
            return;
        };
        if forgotten > 0 {
            let what = format!("what was known of {forgotten} sessions, for translation-bytes");
            let mut outcome = Translation::default();
            outcome.note(DialectEvent::Forgotten, None, what);
            self.note_outcome(Side::Agent, &mut outcome, out);
        }
        if is_too_much {
            let reason = format!(
                "has more requests, sessions and options open than can be translated within \
                 translation-bytes ({limit} bytes); raise that limit if they are meant"
            );
            self.close_for_violation(Side::Agent, reason, out);
        }
    }

    /// Checks whether a message shows the dialect of its sender.
    fn detect(&mut self, from: Side, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let asked = &self.pending[from.other() as usize];
        let request_method = match at.kind {
            Kind::Result | Kind::Error => {
                asked.get(at.id(frame)).map(|request| &request.method[..])
            }
            Kind::Request | Kind::Notification => None,
        };
        if let Some(found) = self.dialects.detect(from, frame, at, request_method) {
            out.note(Note::Recognised {
                side: from,
                dialect: found.dialect,
                by: found.by,
            });
        }
    }

    /// Sends a canonical message to a side that does not use canonical ACP.
    pub(super) fn translate_out(
        &mut self,
        to: Side,
        frame: Frame,
        at: Option<&Envelope>,
        out: &mut Outbox,
    ) {
        let scanned = at.map_or_else(|| scan(&frame, &self.limits), |at| Scanned::Message(*at));
        let at = match &scanned {
            Scanned::Message(at) if self.dialects.concerns(to, Way::Write, &frame, at) => at,
            _ => return self.queue(to, frame, out),
        };
        let mut outcome = self.dialects.write(to, &frame, at);
        self.note_outcome(to, &mut outcome, out);
        match outcome.forward {
            Forward::Unchanged => self.queue(to, frame, out),
            Forward::Frames(frames) => self.queue_all(to, frames, out),
        }
        // An answer in place of `to`, which could not be asked in its dialect.
        self.returned
            .extend(outcome.replies.into_iter().map(|frame| (to, frame)));
    }

    /// Takes the answers that translators and we have given in place of a side.
    pub(super) fn handle_returned(&mut self, out: &mut Outbox) {
        while let Some((from, frame)) = self.returned.pop_front() {
            self.handle_all(from, vec![frame], out);
        }
        while let Some((from, frame)) = self.refused.pop_front() {
            let scanned = scan(&frame, &self.limits);
            self.handle_scanned(from, frame, &scanned, out);
        }
    }

    /// Takes the output of a translator.
    fn handle_all(&mut self, from: Side, frames: Vec<Frame>, out: &mut Outbox) {
        for frame in frames {
            match scan(&frame, &self.limits) {
                Scanned::Message(at) => self.handle_message(from, frame, &at, out),
                // What a rule adds may be one level too deep.
                Scanned::Invalid(error) => self.handle_frame_error(from, error, self.now, out),
                Scanned::Batch => debug_assert!(false, "a rule made a batch: {frame:?}"),
            }
        }
    }

    /// Records what a translator did.
    pub(super) fn note_outcome(&self, side: Side, outcome: &mut Translation, out: &mut Outbox) {
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
                dialect: self.dialects.dialect(side).to_owned(),
                rule: note.rule,
                detail: note.detail,
            });
        }
    }

    /// Records an unknown method, of a message that no rule has changed.
    fn note_unknown_method(&self, from: Side, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let calls = matches!(at.kind, Kind::Request | Kind::Notification);
        if !calls || is_known(frame, at) {
            return;
        }
        out.note(Note::Dialect {
            side: from,
            what: DialectEvent::UnknownMethod,
            dialect: self.dialects.dialect(from).to_owned(),
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
