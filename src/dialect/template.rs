//! Remembers the last notification that no rule concerned. The updates of a streaming agent mostly
//! differ in their text alone, and then nothing is looked up for the next one.

use memchr::memmem;

use super::table::{Expect, Guard, Literal};
use super::text::string_end;
use jsonrpc::Envelope;

/// The member whose value differs.
const NAME: &str = "text";

/// Longest message that is remembered, without its text, in bytes.
const MAX_LENGTH: usize = 512;

/// A message without the content of its member `text`, if it has one.
#[derive(Debug, Default)]
pub(super) struct Template {
    /// What it has before that, the opening quote included.
    start: Vec<u8>,
    /// What it has from the closing quote on.
    end: Vec<u8>,
    /// How many strings it has. One more quote would make another string.
    strings: u32,
}

impl Template {
    /// Whether a valid message differs from the remembered one in its text alone.
    #[inline]
    pub(super) fn fits(&self, message: &[u8], at: &Envelope) -> bool {
        at.strings == self.strings
            && !self.start.is_empty()
            && message.len() >= self.start.len() + self.end.len()
            && message.starts_with(&self.start)
            && message.ends_with(&self.end)
    }

    /// Remembers a valid message.
    pub(super) fn learn(&mut self, message: &[u8], at: &Envelope) {
        self.start.clear();
        self.strings = at.strings;
        let Some(opening) = opening_quote(message) else {
            return;
        };
        let (start, rest) = message.split_at(opening + 1);
        let end = &rest[string_end(message, opening) - 1 - start.len()..];
        if start.len() + end.len() > MAX_LENGTH {
            return;
        }
        self.start.extend_from_slice(start);
        self.end.clear();
        self.end.extend_from_slice(end);
    }
}

/// Where the first string begins that is the value of a member `text`.
fn opening_quote(message: &[u8]) -> Option<usize> {
    let name = memmem::find(message, b"\"text\":")?;
    let value = name + NAME.len() + 3;
    // The end of a longer name, with a quote in it.
    let is_end = name > 0 && message[name - 1] == b'\\';
    let opening = value + usize::from(message.get(value) == Some(&b' '));
    (!is_end && message.get(opening) == Some(&b'"')).then_some(opening)
}

/// Whether a guard may depend on what a member `text` says.
pub(super) fn reads_text(guard: &Guard) -> bool {
    let is_nested = |literal: &Literal| matches!(literal.0.first(), Some(b'{' | b'['));
    guard.0.iter().any(|(place, expect)| {
        let is_text = place.names().last().is_some_and(|name| **name == *NAME);
        match expect {
            Expect::Is(_) | Expect::Absent(_) => false,
            Expect::Matches(_) => is_text,
            Expect::Const(literal) => is_text || is_nested(literal),
            Expect::In(all) | Expect::NotIn(all) => is_text || all.iter().any(is_nested),
        }
    })
}
