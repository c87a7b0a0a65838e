//! Writes the lines of frames that follow each other.
//!
//! In a stream of frames, lines differ in number, checksum and frame, and in little else: many have
//! the same times, method and session. So the part in between is encoded once and copied as long
//! as it stays the same.

use super::event::MessageKind;
use super::spell::number;
use super::write::{Facts, Kept, Stamp, keep, members, seal, times};
use crate::jsonrpc::Side;

/// Typical bytes of a line besides the frame.
const LINE: usize = 256;

/// Writes the lines of frames, reusing the encoding of the line before.
#[derive(Debug, Default)]
pub struct Lines {
    /// The times of the last line, and their encoding.
    times: (u64, u64),
    clock: Vec<u8>,
    /// The metadata of the last cacheable frame, and its encoding.
    plain: Plain,
    members: Vec<u8>,
}

/// The metadata that most frames have.
#[derive(Debug, Default)]
struct Plain {
    hop: Option<Side>,
    to: Option<Side>,
    kind: Option<MessageKind>,
    method: Option<Vec<u8>>,
    session: Option<Vec<u8>>,
}

impl Lines {
    /// Appends a frame, like [`write::frame`](super::write::frame).
    pub fn frame(&mut self, out: &mut Vec<u8>, stamp: Stamp, facts: &Facts<'_>, body: Kept<'_>) {
        out.reserve(LINE + body.len());
        let start = out.len();
        number(out, b"{\"n\":", stamp.n);
        if self.clock.is_empty() || self.times != (stamp.t, stamp.w) {
            self.times = (stamp.t, stamp.w);
            self.clock.clear();
            times(&mut self.clock, stamp);
        }
        out.extend_from_slice(&self.clock);
        if self.plain.is(facts) {
            out.extend_from_slice(&self.members);
        } else if is_plain(facts) {
            self.plain.take(facts);
            self.members.clear();
            members(&mut self.members, facts);
            out.extend_from_slice(&self.members);
        } else {
            members(out, facts);
        }
        keep(out, body);
        seal(out, start);
    }
}

impl Plain {
    /// Whether a frame has exactly this metadata.
    fn is(&self, facts: &Facts<'_>) -> bool {
        self.hop == Some(facts.hop)
            && self.to == Some(facts.to)
            && self.kind == facts.kind
            && self.method.as_deref() == facts.method
            && self.session.as_deref() == facts.session
            && is_plain(facts)
    }

    fn take(&mut self, facts: &Facts<'_>) {
        self.hop = Some(facts.hop);
        self.to = Some(facts.to);
        self.kind = facts.kind;
        self.method = facts.method.map(<[u8]>::to_vec);
        self.session = facts.session.map(<[u8]>::to_vec);
    }
}

/// Whether a frame has no metadata that differs from frame to frame.
const fn is_plain(facts: &Facts<'_>) -> bool {
    let Facts {
        hop: _,
        to: _,
        kind: _,
        method: _,
        session: _,
        id: None,
        answers: None,
        of: None,
        rules: [],
        patch: None,
        redacted: [],
    } = facts
    else {
        return false;
    };
    true
}
