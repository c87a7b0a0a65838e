//! The lines that `translate` reads: plain messages, or a transcript that names the direction.
//!
//! `{"dir":"a2c","msg":…}` is a line of a transcript; its other members are kept, and a changed
//! message is put back into its line with every other byte as it was. Not here: whose message a
//! plain line is.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::ops::Range;

use serde_json::value::RawValue;

use crate::wire::{Envelope, Frame, Limits, Shape, Side, scan};

/// One line.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Line {
    /// A message.
    Message {
        frame: Frame,
        at: Envelope,
        /// Where it stands, when the line names the direction.
        told: Option<Told>,
    },
    /// Something else, copied as it is; the reason is for a person when there is one.
    Other(Option<String>),
}

/// What a line of a transcript tells besides the message.
pub(super) struct Told {
    pub(super) from: Side,
    /// The message's place in the line.
    message: Range<usize>,
    /// The direction's place in the line, quotes included.
    direction: Range<usize>,
    short: bool,
}

/// The next line without its break, or `None` at the end.
///
/// # Errors
/// Reading fails, or the line is longer than any message may be.
pub(super) fn next(input: &mut impl BufRead, limits: &Limits) -> io::Result<Option<Vec<u8>>> {
    // A transcript adds a little to its message.
    let longest = limits.frame_from_child + (64 << 10);
    let mut line = Vec::new();
    let bound = u64::try_from(longest).unwrap_or(u64::MAX);
    if input.take(bound + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() > longest {
        let what = format!("a line is longer than {longest} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    while line
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        line.pop();
    }
    Ok(Some(line))
}

impl Line {
    pub(super) fn parse(line: &[u8], limits: &Limits) -> Self {
        if line.trim_ascii().is_empty() {
            return Self::Other(None);
        }
        if let Some(told) = transcript(line) {
            return match told {
                Some(told) => Self::message(&line[told.message.clone()], Some(told), limits),
                None => Self::Other(None),
            };
        }
        Self::message(line, None, limits)
    }

    fn message(bytes: &[u8], told: Option<Told>, limits: &Limits) -> Self {
        let frame = Frame::from(bytes.to_vec());
        match scan(&frame, limits) {
            Shape::One(at) => Self::Message { frame, at, told },
            Shape::Batch => Self::Other(Some("a batch".to_owned())),
            Shape::Bad(flaw) => Self::Other(Some(flaw.to_string())),
        }
    }
}

impl Told {
    /// The line with another message, maybe of the other side.
    pub(super) fn retell(&self, line: &[u8], from: Side, message: &[u8]) -> Vec<u8> {
        let word: &[u8] = match (from, self.short) {
            (Side::Client, true) => b"\"c2a\"",
            (Side::Agent, true) => b"\"a2c\"",
            (Side::Client, false) => b"\"client_to_agent\"",
            (Side::Agent, false) => b"\"agent_to_client\"",
        };
        let mut parts = [(&self.message, message), (&self.direction, word)];
        parts.sort_by_key(|(range, _)| range.start);
        let [(first, one), (second, two)] = parts;
        [
            &line[..first.start],
            one,
            &line[first.end..second.start],
            two,
            &line[second.end..],
        ]
        .concat()
    }
}

/// What a line of a transcript tells: `None` when it is none, `Some(None)` when it has no message.
fn transcript(line: &[u8]) -> Option<Option<Told>> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(line).ok()?;
    let direction = members.get("dir")?.get();
    let (from, short) = match direction {
        "\"c2a\"" => (Side::Client, true),
        "\"a2c\"" => (Side::Agent, true),
        "\"client_to_agent\"" => (Side::Client, false),
        "\"agent_to_client\"" => (Side::Agent, false),
        _ => return None,
    };
    let place = |raw: &str| {
        let start = raw.as_ptr() as usize - line.as_ptr() as usize;
        start..start + raw.len()
    };
    Some(members.get("msg").map(|message| Told {
        from,
        message: place(message.get()),
        direction: place(direction),
        short,
    }))
}
