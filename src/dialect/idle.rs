//! Telling the messages with which nothing is done, before anything is made of them.
//!
//! Most messages are no rule's: that costs one lookup by the method and one look into the body, and
//! with a beginning that was seen before not even those. Not here: what a rule asks for (see `gate`).

use super::look::Look;
use super::message;
use super::table::Way;
use super::translate::Translator;
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, Kind};

impl Translator {
    /// Whether [`Translator::read`] would leave a notification as it is and note nothing. Only when it
    /// would not is `read` to be called.
    pub fn reads_as_is(&mut self, frame: &Frame, at: &Envelope) -> bool {
        at.jsonrpc && at.kind == Kind::Notification && self.leaves(Way::Read, frame, at)
    }

    /// The same of [`Translator::write`].
    pub fn writes_as_is(&mut self, frame: &Frame, at: &Envelope) -> bool {
        at.kind == Kind::Notification
            && !self.program.int_ids()
            && self.legacy.is_quiet()
            && self.leaves(Way::Write, frame, at)
    }

    /// Whether nothing is done with a notification but to remember that its session is alive. Now
    /// and then it says no when that is so: then nothing comes of looking closer.
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
            // Run at leisure; it is seldom.
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

    /// Whether a rule may be for such a message, or anything of it is remembered.
    pub(super) fn lets_in(&self, way: Way, kind: Kind, method: &str, body: Look<'_, '_>) -> bool {
        let gate = self
            .program
            .gate(way, self.from(way), kind, method.as_bytes());
        gate.is_some_and(|gate| gate.lets_in(body))
    }
}

/// The body of a message, to be looked at.
pub(super) fn body_of<'a>(frame: &'a Frame, at: &'a Envelope) -> Look<'a, 'a> {
    Look::body(frame, at).unwrap_or(Look::Node(&Node::Absent))
}
