//! Messages, one per line: bare, or with direction and time.

use super::{Form, Said};
use crate::jsonrpc::{Limits, Side, is_json};
use crate::recording::spelled;
use crate::recording::write::fits_line;

/// Bare messages, and other lines that are JSON.
pub(super) struct Plain;

/// `{"dir":"c2a","ts":0.1,"msg":{…}}`; a line that is no JSON as `"raw":"…"`.
pub(super) struct Captured;

impl Form for Plain {
    fn message(&mut self, said: &Said<'_>, out: &mut Vec<u8>) -> bool {
        if said.kind().is_none() && !is_json(said.bytes, &Limits::default()) {
            return false;
        }
        if fits_line(said.bytes) {
            out.extend_from_slice(said.bytes);
        } else {
            // A line break between tokens may be replaced by a space.
            out.extend(said.bytes.trim_ascii().iter().map(|byte| match byte {
                b'\n' | b'\r' => b' ',
                byte => *byte,
            }));
        }
        out.push(b'\n');
        true
    }
}

impl Form for Captured {
    fn message(&mut self, said: &Said<'_>, out: &mut Vec<u8>) -> bool {
        let dir = match said.from {
            Side::Client => "c2a",
            Side::Agent => "a2c",
        };
        let (seconds, micros) = (said.event.t / 1_000_000, said.event.t % 1_000_000);
        out.extend_from_slice(format!(r#"{{"dir":"{dir}","ts":{seconds}.{micros:06},"#).as_bytes());
        if said.kind().is_some() {
            out.extend_from_slice(br#""msg":"#);
            Plain.message(said, out);
            out.pop();
        } else {
            out.extend_from_slice(format!(r#""raw":{}"#, spelled(said.bytes)).as_bytes());
        }
        out.extend_from_slice(b"}\n");
        true
    }
}
