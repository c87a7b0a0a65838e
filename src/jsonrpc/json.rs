//! A strict reader of JSON text (RFC 8259) that builds nothing.
//!
//! It validates a text and reports where its parts end; it never recurses and never allocates, so
//! that deep nesting costs neither stack nor memory. UTF-8 is checked over the whole text, and only
//! when a string is not ASCII.

use super::key::Key;
use super::string_scan::StringScan;
use super::{FrameFault, Limits};

/// The deepest nesting that can be followed; a higher `Limits::nesting` means this one.
const DEEPEST: usize = 1024;

/// Reads one text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    /// The whole text.
    pub(super) text: &'a [u8],
    /// The next byte to read.
    pub(super) at: usize,
    /// How deeply containers may be nested.
    nesting: usize,
    strings: StringScan,
}

/// What was expected at the byte where the reader stopped. One byte wide, so that the success path stays in
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadError {
    Value,
    Key,
    Colon,
    CommaOrBrace,
    CommaOrBracket,
    Digit,
    Escape,
    HexDigit,
    NoControl,
    Quote,
    End,
    Deep,
}

/// Receives the members of an object while it is read, down to some level; its own are on level 1.
pub(super) trait Visitor {
    /// The deepest level it receives.
    const LEVELS: usize;

    /// A member's name was read, whose first byte is at `name`. Its value begins at `value`.
    fn key(&mut self, level: usize, key: Key<'_>, name: usize, value: usize);

    /// The value of the last member of that level ended before `at`.
    fn ended(&mut self, level: usize, at: usize);
}

/// Ignores all members.
impl Visitor for () {
    const LEVELS: usize = 0;

    fn key(&mut self, _: usize, _: Key<'_>, _: usize, _: usize) {}

    fn ended(&mut self, _: usize, _: usize) {}
}

/// Whether `text` is one JSON value in UTF-8, nested no deeper than the limit.
#[must_use]
pub fn is_json(text: &[u8], limits: &Limits) -> bool {
    let mut reader = Reader::new(text, limits.nesting);
    reader.document().is_ok() && reader.is_utf8()
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8], nesting: usize) -> Self {
        Self {
            text,
            at: 0,
            nesting: nesting.min(DEEPEST),
            strings: StringScan::new(),
        }
    }

    /// The current byte. The end reads as NUL, which is not valid outside of strings.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Skips white space and returns the byte after it.
    #[inline(always)]
    pub(super) fn skip_space(&mut self) -> u8 {
        // Mostly there is none.
        match self.peek() {
            byte @ b'!'.. => byte,
            _ => self.skip_space_slow(),
        }
    }

    #[inline(never)]
    fn skip_space_slow(&mut self) -> u8 {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
        self.peek()
    }

    /// One value with white space around it, and nothing else.
    pub(super) fn document(&mut self) -> Result<(), ReadError> {
        self.skip_space();
        self.value(0, &mut ())?;
        self.end()
    }

    /// White space and the end of the text.
    pub(super) fn end(&mut self) -> Result<(), ReadError> {
        self.skip_space();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(ReadError::End)
        }
    }

    /// Whether the text is UTF-8, once it was read to its end: outside of strings all valid JSON is
    /// ASCII, and for strings it is known whether they are.
    pub(super) fn is_utf8(&self) -> bool {
        !self.strings.has_non_ascii() || simdutf8::basic::from_utf8(self.text).is_ok()
    }

    /// The level below `depth`, if the limit allows it.
    #[inline]
    pub(super) fn deeper(&self, depth: usize) -> Result<usize, ReadError> {
        if depth < self.nesting {
            Ok(depth + 1)
        } else {
            Err(ReadError::Deep)
        }
    }

    /// A member's name, its colon, and the white space up to the value.
    #[inline(always)]
    pub(super) fn key(&mut self) -> Result<Key<'a>, ReadError> {
        if self.peek() != b'"' {
            return Err(ReadError::Key);
        }
        let start = self.at + 1;
        let escaped = self.string()?;
        let raw = &self.text[start..self.at - 1];
        if self.skip_space() != b':' {
            return Err(ReadError::Colon);
        }
        self.at += 1;
        self.skip_space();
        Ok(Key::new(raw, escaped))
    }

    /// One value, which starts at the current byte and lies inside `outer` containers.
    ///
    /// When it is an object, `visitor` receives its members.
    #[inline]
    pub(super) fn value<E: Visitor>(
        &mut self,
        outer: usize,
        visitor: &mut E,
    ) -> Result<(), ReadError> {
        match self.peek() {
            b'{' | b'[' => self.walk(outer, visitor),
            _ => self.scalar(),
        }
    }

    /// The container that starts at the current byte.
    #[inline(always)]
    fn walk<E: Visitor>(&mut self, outer: usize, visitor: &mut E) -> Result<(), ReadError> {
        let mut depth = outer;
        let mut in_object = false;
        let mut levels = Levels([0; DEEPEST / 64]);
        loop {
            // A value starts here.
            let mut ended = true;
            match self.peek() {
                open @ (b'{' | b'[') => {
                    depth = self.deeper(depth)?;
                    in_object = open == b'{';
                    levels.set(depth, in_object);
                    self.at += 1;
                    // `{` and `}`, `[` and `]` are two apart in ASCII.
                    if self.skip_space() == open + 2 {
                        self.at += 1;
                        depth -= 1;
                        in_object = levels.get(depth);
                    } else {
                        ended = false;
                    }
                }
                _ => self.scalar()?,
            }
            while ended {
                if depth == outer {
                    return Ok(());
                }
                if in_object && depth - outer <= E::LEVELS {
                    visitor.ended(depth - outer, self.at);
                }
                match (self.skip_space(), in_object) {
                    (b',', _) => {
                        self.at += 1;
                        self.skip_space();
                        ended = false;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        depth -= 1;
                        in_object = levels.get(depth);
                    }
                    (_, true) => return Err(ReadError::CommaOrBrace),
                    (_, false) => return Err(ReadError::CommaOrBracket),
                }
            }
            if in_object {
                let name = self.at + 1;
                let key = self.key()?;
                if depth - outer <= E::LEVELS {
                    visitor.key(depth - outer, key, name, self.at);
                }
            }
        }
    }

    #[inline(always)]
    fn scalar(&mut self) -> Result<(), ReadError> {
        match self.peek() {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => Err(ReadError::Value),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ReadError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(ReadError::Value)
        }
    }

    fn number(&mut self) -> Result<(), ReadError> {
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(ReadError::Digit)
        }
    }

    /// A string from its opening quote; returns whether it has escapes.
    #[inline(always)]
    fn string(&mut self) -> Result<bool, ReadError> {
        self.at = self.strings.end(self.text, self.at + 1);
        if self.text.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.string_with_escapes().map(|()| true)
    }

    /// The rest of a string, from its first special byte.
    #[inline(never)]
    fn string_with_escapes(&mut self) -> Result<(), ReadError> {
        let text = self.text;
        let mut at = self.at;
        loop {
            match text.get(at) {
                Some(b'\\') => {
                    let code = text.get(at + 1).copied().unwrap_or(0);
                    if matches!(code, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') {
                        at += 2;
                    } else {
                        self.at = at + 1;
                        self.escaped_code()?;
                        at = self.at;
                    }
                }
                found => {
                    self.at = at;
                    return match found {
                        Some(b'"') => {
                            self.at += 1;
                            Ok(())
                        }
                        Some(_) => Err(ReadError::NoControl),
                        None => Err(ReadError::Quote),
                    };
                }
            }
            at = self.strings.end(text, at);
        }
    }

    /// What follows a backslash that is not one of the short escapes: `u` and four digits. Lone
    /// surrogates are accepted: encoders that split a text write them, and RFC 8259, section 8.2,
    /// allows them.
    fn escaped_code(&mut self) -> Result<(), ReadError> {
        if self.peek() != b'u' {
            return Err(ReadError::Escape);
        }
        self.at += 1;
        for _ in 0..4 {
            if !self.peek().is_ascii_hexdigit() {
                return Err(ReadError::HexDigit);
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// Which containers are open, one bit a level: set for an object, clear for an array. Their number
/// is fixed, so that deep nesting costs neither stack nor memory.
struct Levels([u64; DEEPEST / 64]);

impl Levels {
    #[inline]
    fn set(&mut self, depth: usize, object: bool) {
        let (word, bit) = Self::place(depth);
        self.0[word] = self.0[word] & !(1 << bit) | u64::from(object) << bit;
    }

    #[inline]
    fn get(&self, depth: usize) -> bool {
        let (word, bit) = Self::place(depth);
        self.0[word] >> bit & 1 == 1
    }

    /// Levels count from 1, so the deepest one can use the bit of level 0, which is never read.
    #[inline]
    fn place(depth: usize) -> (usize, usize) {
        (depth / 64 % (DEEPEST / 64), depth % 64)
    }
}

impl ReadError {
    /// The fault for this, under a nesting limit of `limit`.
    pub(super) fn fault(self, limit: usize) -> FrameFault {
        let expected = match self {
            Self::Deep => {
                return FrameFault::TooDeep {
                    limit: limit.min(DEEPEST),
                };
            }
            Self::Value => "a value",
            Self::Key => "a member name in quotes",
            Self::Colon => "a colon",
            Self::CommaOrBrace => "a comma or a closing brace",
            Self::CommaOrBracket => "a comma or a closing bracket",
            Self::Digit => "a digit",
            Self::Escape => "a valid escape",
            Self::HexDigit => "four hexadecimal digits",
            Self::NoControl => "no raw control character in a string",
            Self::Quote => "a closing quote",
            Self::End => "the end of the message",
        };
        FrameFault::Malformed { expected }
    }
}
