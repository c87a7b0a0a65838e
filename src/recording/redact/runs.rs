//! The position of a search in a text, and what is cut out of it: runs of token characters, and
//! words of command lines.

use std::ops::Range;

use super::escapes::quote_count;
use super::random::{is_random, is_random_so_far, reads_as_words};

/// The number of bytes of a longer run that are judged.
pub(super) const MAX_JUDGED: usize = 256;

/// The scan of one text. It remembers its position and what it cut out last, so that a text made of
/// announcing words only takes no longer than others.
#[derive(Default)]
pub(super) struct Scan<'a> {
    pub(super) text: &'a [u8],
    /// The text continues elsewhere: a secret at its end may be incomplete.
    pub(super) partial: bool,
    /// The last run of token characters, and the position of its last digit.
    run: Range<usize>,
    pub(super) digit: Option<usize>,
    /// The last word of a command line.
    value: Range<usize>,
    /// The end of the last PEM block or private lines; of the last base64 that was decoded, and the
    /// last cookies.
    pub(super) block_end: usize,
    pub(super) base64_end: usize,
    pub(super) cookies_end: usize,
    /// The last block is not complete.
    pub(super) in_block: bool,
}

/// A run of token characters, or the rest of one, that may be a secret.
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

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8], partial: bool) -> Self {
        Self {
            text,
            partial,
            ..Self::default()
        }
    }

    /// The rest of the run of token characters from `start` on.
    pub(super) fn run(&mut self, start: usize) -> Run<'a> {
        if !self.run.contains(&start) {
            self.run = start..run_end(self.text, start);
            let digits = self.text[self.run.clone()].iter();
            let digit = digits.rev().position(u8::is_ascii_digit);
            self.digit = digit.map(|back| self.run.end - 1 - back);
        }
        let end = self.run.end;
        Run {
            at: start..end,
            head: &self.text[start..end.min(start + MAX_JUDGED)],
            open: self.is_open(end),
            is_code: is_code(self.text, end),
        }
    }

    /// The word of a command line at `start`, quoted or not, that is not a reference to a value
    /// elsewhere.
    pub(super) fn value(&mut self, start: usize) -> Option<Range<usize>> {
        let start = start + quote_count(self.text, start);
        let ends = |byte: &u8| *byte <= b' ' || b"\"'\\`;|&<>(),[]".contains(byte);
        if !self.value.contains(&start) {
            let rest = &self.text[start..];
            let length = rest.iter().position(ends).unwrap_or(rest.len());
            self.value = start..start + length;
        }
        let own = start..self.value.end;
        let first = self.text.get(own.start).filter(|_| !own.is_empty())?;
        (!b"$%{*-=".contains(first)).then_some(own)
    }

    /// Whether a word that ends there may continue elsewhere.
    pub(super) fn is_open(&self, end: usize) -> bool {
        self.partial && end == self.text.len()
    }
}

/// Whether a word that ends at `end` is that of a call or an element in code.
pub(super) fn is_code(text: &[u8], end: usize) -> bool {
    matches!(text.get(end), Some(b'(' | b'['))
}

/// The end of the run of token characters that begins at `from`.
pub(super) fn run_end(text: &[u8], from: usize) -> usize {
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
