//! Messages, one per line: bare, or with direction and time.

use super::{Exported, Format};
use crate::jsonrpc::{Limits, is_json};
use crate::recording::capture::write_line;
use crate::recording::one_line;

/// Bare messages, and other lines that are JSON.
pub(super) struct Plain;

/// `{"dir":"c2a","ts":0.1,"msg":{…}}`; a line that is no JSON as `"raw":"…"`.
pub(super) struct Captured;

impl Format for Plain {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        let is_line = msg.kind().is_some() || is_json(msg.bytes, &Limits::default());
        if is_line {
            out.extend(one_line(msg.bytes));
            out.push(b'\n');
        }
        is_line
    }
}

impl Format for Captured {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        write_line(out, msg.from, msg.event.t, msg.bytes, msg.kind().is_some());
        out.push(b'\n');
        true
    }
}
