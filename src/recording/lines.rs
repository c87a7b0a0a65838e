//! The lines of frames that follow each other.
//!
//! Where a side streams, lines differ in their number, their checksum and their frame, and in
//! little else: many are of one moment, and of one method and session. So what comes between is
//! spelled once, and then copied as long as it stays the same. Not here: how a line is spelled (see
//! `write`).

use super::event::MessageKind;
use super::spell::number;
use super::write::{Facts, Kept, Stamp, keep, members, seal, times};
use crate::jsonrpc::Side;

/// Bytes of most lines of a frame, beside those of the frame.
const LINE: usize = 256;

/// Writes lines of frames.
#[derive(Debug, Default)]
pub struct Lines {
    /// The times that were written last, and how they are spelled.
    times: (u64, u64),
    clock: Vec<u8>,
    /// What was written last of a frame of which no more is known, and how that is spelled.
    plain: Plain,
    members: Vec<u8>,
}

/// What is known of most frames.
#[derive(Debug, Default)]
struct Plain {
    hop: Option<Side>,
    to: Option<Side>,
    kind: Option<MessageKind>,
    method: Option<Vec<u8>>,
    session: Option<Vec<u8>>,
}

impl Lines {
    /// Appends a frame, as [`write::frame`](super::write::frame) does.
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
    /// Whether this is known of a frame, and nothing else.
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

/// Whether nothing is known of a frame that would be another with the next one.
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
