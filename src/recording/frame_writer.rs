//! Writes the lines of frames that follow each other.
//!
//! In a stream of frames, lines differ in number, checksum and frame, and in little else: many have
//! the same times, method and session. So the part in between is encoded once and copied as long
//! as it stays the same.

use super::encode::number;
use super::event::MessageKind;
use super::write::{FrameInfo, PayloadRef, Stamp, end_line, frame_members, times, write_payload};
use crate::jsonrpc::Side;

/// Typical bytes of a line besides the frame.
const OVERHEAD: usize = 256;

/// Writes the lines of frames, reusing the encoding of the line before.
#[derive(Debug, Default)]
pub struct FrameWriter {
    /// The times of the last line, and their encoding.
    times: (u64, u64),
    times_text: Vec<u8>,
    /// The metadata of the last cacheable frame, and its encoding.
    last: LastFrame,
    members_text: Vec<u8>,
}

/// The metadata that most frames have.
#[derive(Debug, Default)]
struct LastFrame {
    edge: Option<Side>,
    to: Option<Side>,
    kind: Option<MessageKind>,
    method: Option<Vec<u8>>,
    session: Option<Vec<u8>>,
}

impl FrameWriter {
    /// Appends a frame, like [`write::frame`](super::write::frame).
    pub fn frame(
        &mut self,
        out: &mut Vec<u8>,
        stamp: Stamp,
        info: &FrameInfo<'_>,
        body: PayloadRef<'_>,
    ) {
        out.reserve(OVERHEAD + body.len());
        let start = out.len();
        number(out, b"{\"n\":", stamp.n);
        if self.times_text.is_empty() || self.times != (stamp.t, stamp.w) {
            self.times = (stamp.t, stamp.w);
            self.times_text.clear();
            times(&mut self.times_text, stamp);
        }
        out.extend_from_slice(&self.times_text);
        if self.last.matches(info) {
            out.extend_from_slice(&self.members_text);
        } else if is_cacheable(info) {
            self.last.set(info);
            self.members_text.clear();
            frame_members(&mut self.members_text, info);
            out.extend_from_slice(&self.members_text);
        } else {
            frame_members(out, info);
        }
        write_payload(out, body);
        end_line(out, start);
    }
}

impl LastFrame {
    /// Whether a frame has exactly this metadata.
    fn matches(&self, info: &FrameInfo<'_>) -> bool {
        self.edge == Some(info.edge)
            && self.to == Some(info.to)
            && self.kind == info.kind
            && self.method.as_deref() == info.method
            && self.session.as_deref() == info.session
            && is_cacheable(info)
    }

    fn set(&mut self, info: &FrameInfo<'_>) {
        self.edge = Some(info.edge);
        self.to = Some(info.to);
        self.kind = info.kind;
        self.method = info.method.map(<[u8]>::to_vec);
        self.session = info.session.map(<[u8]>::to_vec);
    }
}

/// Whether a frame has no metadata that differs from frame to frame.
const fn is_cacheable(info: &FrameInfo<'_>) -> bool {
    let FrameInfo {
        edge: _,
        to: _,
        kind: _,
        method: _,
        session: _,
        id: None,
        answers: None,
        source: None,
        rules: [],
        patch: None,
        redacted: [],
    } = info
    else {
        return false;
    };
    true
}
