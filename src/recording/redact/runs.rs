//! Runs of token characters.
//!
//! Words that announce a token may stand so close together that each lies in the run of the one
//! before. The last run is cached, so that such a text takes no longer than others.

use std::ops::Range;

use super::random::{is_random, is_random_so_far, reads_as_words};

/// The number of bytes of a longer run that are judged.
pub(super) const MAX_JUDGED: usize = 256;

/// The runs of one text.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    pub(super) text: &'a [u8],
    /// The text continues elsewhere: a run at its end may be incomplete.
    pub(super) partial: bool,
    /// The last run, and the position of its last digit.
    last: Range<usize>,
    digit: Option<usize>,
}

/// A run, or the rest of one, that may be a secret.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) at: Range<usize>,
    /// What is judged of it.
    pub(super) head: &'a [u8],
    /// It may continue elsewhere.
    pub(super) open: bool,
    /// It is followed by a parenthesis or bracket, as a function or an array is.
    pub(super) is_code: bool,
}

impl<'a> Runs<'a> {
    pub(super) const fn new(text: &'a [u8], partial: bool) -> Self {
        Self {
            text,
            partial,
            last: 0..0,
            digit: None,
        }
    }

    /// The rest of the run from `start` on.
    pub(super) fn rest_from(&mut self, start: usize) -> Run<'a> {
        if !self.last.contains(&start) {
            self.last = start..end(self.text, start);
            let digit = self.text[self.last.clone()]
                .iter()
                .rposition(u8::is_ascii_digit);
            self.digit = digit.map(|digit| start + digit);
        }
        let end = self.last.end;
        Run {
            at: start..end,
            head: &self.text[start..end.min(start + MAX_JUDGED)],
            open: self.partial && end == self.text.len(),
            is_code: is_code(self.text, end),
        }
    }

    /// Whether there is a digit from `start` to the end of the run that was requested last.
    pub(super) fn has_digit(&self, start: usize) -> bool {
        self.digit >= Some(start)
    }
}

impl Run<'_> {
    /// Without the first bytes.
    pub(super) fn skip(mut self, bytes: usize) -> Self {
        self.at.start += bytes.min(self.at.len());
        self.head = &self.head[bytes.min(self.head.len())..];
        self
    }

    /// Whether it is random, or incomplete and random so far.
    pub(super) fn is_random(&self) -> bool {
        is_random(self.head) || self.open && is_random_so_far(self.head)
    }

    /// Whether it is made of words.
    pub(super) fn reads_as_words(&self) -> bool {
        reads_as_words(self.head)
    }
}

/// Whether a word that ends at `end` is that of a call or an element in code.
pub(super) fn is_code(text: &[u8], end: usize) -> bool {
    matches!(text.get(end), Some(b'(' | b'['))
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
