//! Recognises the messages that no rule changes, before they are parsed.
//!
//! Most messages have no rule: that costs one lookup by the method and one lookup in the body.
//! `prefilter` holds what rules require.

use super::message;
use super::table::Way;
use super::translator::Translator;
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, Kind};

impl Translator {
    /// Whether [`Translator::read`] would leave a notification unchanged and add no note. `read`
    /// must be called if and only if this is false.
    pub fn reads_as_is(&mut self, frame: &Frame, at: &Envelope) -> bool {
        at.jsonrpc && at.kind == Kind::Notification && self.is_untouched(Way::Read, frame, at)
    }

    /// The same for [`Translator::write`].
    pub fn writes_as_is(&mut self, frame: &Frame, at: &Envelope) -> bool {
        at.kind == Kind::Notification
            && !self.program.int_ids()
            && self.legacy.is_idle()
            && self.is_untouched(Way::Write, frame, at)
    }

    /// Whether a notification has no effect except that its session counts as active. It may return
    /// `false` for such a message, which then goes through the rules unchanged.
    pub(super) fn is_untouched(&mut self, way: Way, frame: &Frame, at: &Envelope) -> bool {
        if way == Way::Write && self.program.strips_jsonrpc() && at.jsonrpc {
            return false;
        }
        let raw = at.raw_method(frame);
        let tracking = self.program.tracking;
        let gate = self.program.prefilter(way, self.from(way), at.kind, raw);
        let may_match = match gate {
            Some(gate) => gate.may_match(&message::body(frame, at)),
            // A method with escapes is rare: the full path handles it.
            None => memchr::memchr(b'\\', raw).is_some(),
        };
        if may_match || tracking.sees(raw) {
            return false;
        }
        if tracking.turns && raw == b"session/update" {
            self.sessions.touch(&message::body(frame, at));
        }
        true
    }

    /// Whether a rule may apply to such a message, or a value of it is remembered.
    pub(super) fn may_match(&self, way: Way, kind: Kind, method: &str, body: &Node<'_>) -> bool {
        let gate = self
            .program
            .prefilter(way, self.from(way), kind, method.as_bytes());
        gate.is_some_and(|gate| gate.may_match(body))
    }
}
