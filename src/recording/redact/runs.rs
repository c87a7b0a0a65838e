//! Runs of token characters.
//!
//! Words that announce a token may stand so close together that each lies in the run of the one
//! before. The last run is cached, so that such a text takes no longer than others.

use std::ops::Range;

/// The runs of one text.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    text: &'a [u8],
    /// The last run, and the position of its last digit.
    last: Range<usize>,
    digit: Option<usize>,
}

impl<'a> Runs<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            last: 0..0,
            digit: None,
        }
    }

    /// The rest of the run from `start` on.
    pub(super) fn rest_from(&mut self, start: usize) -> Range<usize> {
        if !self.last.contains(&start) {
            self.last = start..end(self.text, start);
            let digit = self.text[self.last.clone()]
                .iter()
                .rposition(u8::is_ascii_digit);
            self.digit = digit.map(|digit| start + digit);
        }
        start..self.last.end
    }

    /// Whether there is a digit from `start` to the end of the run that was requested last.
    pub(super) fn has_digit(&self, start: usize) -> bool {
        self.digit >= Some(start)
    }
}

/// The end of the run of token characters.
pub(super) fn end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => at += 1,
            b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b'%' => at += 1,
            // `/` as some encoders escape it, also in JSON in a JSON string; or the beginning of
            // either.
            b'\\' => match text[at..].iter().take(4).position(|byte| *byte != b'\\') {
                Some(slashes) if text[at + slashes] == b'/' => at += slashes + 1,
                None if text.len() - at < 4 => at = text.len(),
                _ => break,
            },
            _ => break,
        }
    }
    at
}
