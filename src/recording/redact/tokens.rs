//! A tokenizer for JSON text that reports the position of each token.
//!
//! Bytes stay in place, so that a value can be cut out or replaced and the rest keeps its
//! spelling. It never recurses. Invalid JSON ends the iteration early; it is not a validator (see
//! `jsonrpc::is_json`).

use std::ops::Range;

use smallvec::SmallVec;

/// Bytes of a string that are searched one by one for its end.
const NEAR: usize = 16;

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// An object begins.
    Object,
    /// An array begins.
    Array,
    /// The innermost container ends.
    End,
    /// A member's name, including its quotes.
    Key(Range<usize>),
    /// A string, including its quotes.
    String(Range<usize>),
    /// A number, `true`, `false` or `null`.
    Scalar(Range<usize>),
}

/// The tokens of a text.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether each open container is an object.
    open: SmallVec<[bool; 16]>,
    /// Inside an object: the next string is a name.
    key_next: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            open: SmallVec::new(),
            key_next: false,
        }
    }

    /// Continues at `at`, where a value begins; each of the `open` containers is an object or not.
    pub(super) fn resume(text: &'a [u8], at: usize, open: impl Iterator<Item = bool>) -> Self {
        Self {
            text,
            at,
            open: open.collect(),
            key_next: false,
        }
    }

    /// The number of open containers.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The string that begins here. JSON has no line break in a string, so a line break means that
    /// the text was cut off inside it.
    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let mut at = self.at + 1;
        loop {
            // Most strings are short, and a loop finds their end sooner than a vector.
            let rest = self.text.get(at..)?;
            let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\n');
            let near = rest[..rest.len().min(NEAR)].iter().position(ends);
            at += match near {
                Some(near) => near,
                None => NEAR + memchr::memchr3(b'"', b'\\', b'\n', rest.get(NEAR..)?)?,
            };
            match self.text[at] {
                b'"' => {
                    self.at = at + 1;
                    return Some(start..self.at);
                }
                b'\n' => return None,
                _ => at += 2,
            }
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let byte = *self.text.get(self.at)?;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b':' => self.at += 1,
                b',' => {
                    self.key_next = *self.open.last()?;
                    self.at += 1;
                }
                b'{' | b'[' => {
                    self.at += 1;
                    self.open.push(byte == b'{');
                    self.key_next = byte == b'{';
                    return Some(if byte == b'{' {
                        Token::Object
                    } else {
                        Token::Array
                    });
                }
                b'}' | b']' => {
                    self.at += 1;
                    self.open.pop()?;
                    self.key_next = false;
                    return Some(Token::End);
                }
                b'"' if self.key_next => {
                    self.key_next = false;
                    return self.string().map(Token::Key);
                }
                b'"' => return self.string().map(Token::String),
                _ => {
                    let start = self.at;
                    let ends = |byte: &u8| b",]} \t\r\n:\"{[".contains(byte);
                    self.at += self.text[start..]
                        .iter()
                        .position(ends)
                        .unwrap_or(self.text.len() - start);
                    return Some(Token::Scalar(start..self.at));
                }
            }
        }
    }
}
