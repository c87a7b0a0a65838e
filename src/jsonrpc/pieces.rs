//! Finds complete JSON objects in a line that is not one message.
//!
//! Around them may be what a terminal understands and a program does not mean as text: escape
//! sequences, control characters, byte order marks, white space. Each byte is read once, and once
//! more where it may begin an object.

use std::ops::{Range, RangeInclusive};

use super::Limits;
use super::json::Reader;

/// Objects that are taken from one line at most.
const MAX_OBJECTS: usize = 1000;

/// What a line consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// The complete objects, in order. Whether they are messages is not known.
    pub objects: Vec<Range<usize>>,
    /// Whether there is text outside of them.
    pub has_text: bool,
    /// Where an object begins that the end of the line cuts.
    pub cut: Option<usize>,
}

/// Finds the pieces of a line.
#[must_use]
pub fn pieces(line: &[u8], limits: &Limits) -> Pieces {
    let mut found = Pieces::default();
    let mut at = 0;
    while at < line.len() {
        if let Some(end) = unprinted(line, at) {
            at = end;
        } else if line[at] != b'{' || found.objects.len() == MAX_OBJECTS {
            found.has_text = true;
            at = text_end(line, at);
        } else {
            let mut reader = Reader::new(line, limits.nesting);
            reader.at = at;
            match reader.value(0, &mut ()) {
                Ok(()) => found.objects.push(at..reader.at),
                Err(_) if reader.at >= line.len() => {
                    found.cut = Some(at);
                    break;
                }
                // What follows may begin an object again.
                Err(_) => found.has_text = true,
            }
            at = reader.at.max(at + 1);
        }
    }
    found
}

/// The position after a control character, an escape sequence (ECMA-48), a byte order mark or a
/// space at `at`; `None` when something else is there. No brace ends a sequence: it begins an
/// object.
fn unprinted(line: &[u8], at: usize) -> Option<usize> {
    let last = |at: usize, first: u8| {
        let code = line.get(at).filter(|code| **code != b'{');
        at + usize::from(code.is_some_and(|code| (first..=0x7e).contains(code)))
    };
    // C1 controls are written with ESC, in UTF-8, or as one byte, which in text is a part of a
    // character.
    let (code, at) = match line[at..] {
        [0x1b, code @ 0x40..=0x5f, ..] => (code + 0x40, at + 2),
        [0x1b, ..] => return Some(last(skip(line, at + 1, 0x20..=0x2f), 0x30)),
        [0xc2, code @ 0x80..=0x9f, ..] => (code, at + 2),
        [code @ 0x80..=0x9f, ..] => (code, at + 1),
        [0xef, 0xbb, 0xbf, ..] => return Some(at + 3),
        [0..=b' ' | 0x7f, ..] => return Some(at + 1),
        _ => return None,
    };
    Some(match code {
        0x9b => last(skip(line, at, 0x20..=0x3f), 0x40),
        0x90 | 0x98 | 0x9d..=0x9f => string_end(line, at),
        _ => at,
    })
}

/// The end of a title or another string: behind BEL, ST, CAN or SUB, before another escape, or that
/// of the line.
fn string_end(line: &[u8], at: usize) -> usize {
    let rest = &line[at..];
    for (place, byte) in rest.iter().enumerate() {
        let next = rest.get(place + 1);
        match (byte, next) {
            (0x07 | 0x18 | 0x1a, _) => return at + place + 1,
            (0x1b, Some(b'\\')) | (0xc2, Some(0x9c)) => return at + place + 2,
            (0x1b, _) => return at + place,
            _ => {}
        }
    }
    line.len()
}

fn skip(line: &[u8], at: usize, codes: RangeInclusive<u8>) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| !codes.contains(byte));
    at + end.unwrap_or(rest.len())
}

/// Where the text at `at` may end.
fn text_end(line: &[u8], at: usize) -> usize {
    let rest = &line[at + 1..];
    let end = rest
        .iter()
        .position(|byte| matches!(byte, 0..=0x1f | b'{' | 0x7f | 0xc0..=0xff));
    end.map_or(line.len(), |end| at + 1 + end)
}
