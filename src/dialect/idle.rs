//! Recognises the messages that no rule changes, before they are parsed.
//!
//! Most messages have no rule: that costs one lookup by the method and one lookup in the body, or
//! neither when a message with the same prefix was seen before. `prefilter` holds what rules
//! require.

use super::look::Look;
use super::message;
use super::table::Way;
use super::translate::Translator;
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, Kind};

impl Translator {
    /// Whether [`Translator::read`] would leave a notification unchanged and add no note. `read`
    /// must be called if and only if this is false.
    pub fn reads_as_is(&mut self, frame: &Frame, at: &Envelope) -> bool {
        at.jsonrpc && at.kind == Kind::Notification && self.leaves(Way::Read, frame, at)
    }

    /// The same for [`Translator::write`].
    pub fn writes_as_is(&mut self, frame: &Frame, at: &Envelope) -> bool {
        at.kind == Kind::Notification
            && !self.program.int_ids()
            && self.legacy.is_quiet()
            && self.leaves(Way::Write, frame, at)
    }

    /// Whether a notification has no effect except that its session counts as active. It may return
    /// `false` for such a message, which then goes through the rules unchanged.
    pub(super) fn leaves(&mut self, way: Way, frame: &Frame, at: &Envelope) -> bool {
        let stem = at.stem.number;
        if stem != 0 && stem == self.busy[way as usize] {
            return false;
        }
        if stem == self.idle[way as usize] && at.ends_in_stem() {
            return true;
        }
        let from = self.from(way);
        if self.program.ignores(way, from, at.kind) {
            return true;
        }
        if way == Way::Write && self.program.strips() && at.jsonrpc {
            return false;
        }
        let raw = at.raw_method(frame);
        let gate = self.program.gate(way, from, at.kind, raw);
        let lets_in = match gate {
            Some(gate) => gate.lets_in(body_of(frame, at)),
            // A method with escapes is rare: the full path handles it.
            None => memchr::memchr(b'\\', raw).is_some(),
        };
        if lets_in {
            self.busy[way as usize] = stem;
            return false;
        }
        if self.program.watch.any() {
            if raw == b"session/update" {
                self.sessions.touch(&message::body(frame, at));
            }
        } else if !self.program.strips()
            && at.ends_in_stem()
            && gate.is_none_or(|gate| gate.is_shut_by(frame, at))
        {
            self.idle[way as usize] = stem;
        }
        true
    }

    /// Whether a rule may apply to such a message, or a value of it is remembered.
    pub(super) fn lets_in(&self, way: Way, kind: Kind, method: &str, body: Look<'_, '_>) -> bool {
        let gate = self
            .program
            .gate(way, self.from(way), kind, method.as_bytes());
        gate.is_some_and(|gate| gate.lets_in(body))
    }
}

/// The body of a message, by reference.
pub(super) fn body_of<'a>(frame: &'a Frame, at: &'a Envelope) -> Look<'a, 'a> {
    Look::body(frame, at).unwrap_or(Look::Node(&Node::Absent))
}
