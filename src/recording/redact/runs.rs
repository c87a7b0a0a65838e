//! Runs of the characters that tokens are made of.
//!
//! Words that announce a token may stand so close that each is in the run of the one before: the
//! last run is remembered, so that a text of nothing but those takes no longer than others. Not
//! here: what a token is (see `shapes`).

use std::ops::Range;

/// The runs of one text.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    text: &'a [u8],
    /// The run that was seen last, and its last digit.
    last: Range<usize>,
    digit: Option<usize>,
}

impl<'a> Runs<'a> {
    pub(super) const fn of(text: &'a [u8]) -> Self {
        Self {
            text,
            last: 0..0,
            digit: None,
        }
    }

    /// The rest from there of the run that it is in.
    pub(super) fn from(&mut self, start: usize) -> Range<usize> {
        if !self.last.contains(&start) {
            self.last = start..end(self.text, start);
            let digit = self.text[self.last.clone()]
                .iter()
                .rposition(u8::is_ascii_digit);
            self.digit = digit.map(|digit| start + digit);
        }
        start..self.last.end
    }

    /// Whether there is a digit from there to the end of the run that was asked for last.
    pub(super) fn has_digit(&self, start: usize) -> bool {
        self.digit >= Some(start)
    }
}

/// Where the characters end that tokens are made of.
pub(super) fn end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => at += 1,
            b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b'%' => at += 1,
            // As some encoders spell `/`, and in JSON in JSON that; or as both may begin.
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
