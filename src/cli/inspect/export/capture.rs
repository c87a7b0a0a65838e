//! Messages, one per line: bare, or with direction and time.

use super::{Exported, Format};
use crate::jsonrpc::{Limits, Side, is_json};
use crate::recording::encode_bytes;
use crate::recording::write::fits_line;

/// Bare messages, and other lines that are JSON.
pub(super) struct Plain;

/// `{"dir":"c2a","ts":0.1,"msg":{…}}`; a line that is no JSON as `"raw":"…"`.
pub(super) struct Captured;

impl Format for Plain {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        if msg.kind().is_none() && !is_json(msg.bytes, &Limits::default()) {
            return false;
        }
        if fits_line(msg.bytes) {
            out.extend_from_slice(msg.bytes);
        } else {
            // A line break between tokens may be replaced by a space.
            out.extend(msg.bytes.trim_ascii().iter().map(|byte| match byte {
                b'\n' | b'\r' => b' ',
                byte => *byte,
            }));
        }
        out.push(b'\n');
        true
    }
}

impl Format for Captured {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        let dir = match msg.from {
            Side::Client => "c2a",
            Side::Agent => "a2c",
        };
        let (seconds, micros) = (msg.event.t / 1_000_000, msg.event.t % 1_000_000);
        out.extend_from_slice(format!(r#"{{"dir":"{dir}","ts":{seconds}.{micros:06},"#).as_bytes());
        if msg.kind().is_some() {
            out.extend_from_slice(br#""msg":"#);
            Plain.message(msg, out);
            out.pop();
        } else {
            out.extend_from_slice(format!(r#""raw":{}"#, encode_bytes(msg.bytes)).as_bytes());
        }
        out.extend_from_slice(b"}\n");
        true
    }
}
