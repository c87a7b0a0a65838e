//! A strict reader of JSON text (RFC 8259) that builds nothing.
//!
//! It validates a text and reports where its parts end; it never recurses and never allocates, so
//! that deep nesting costs neither stack nor memory. UTF-8 is checked over the whole text, and only
//! when a string is not ASCII.

use super::Limits;
use super::key::Key;
use super::levels::{DEEPEST, Levels};
use super::read_error::ReadError;
use super::string_scan::StringScan;

/// The bytes that form a whole escape together with a backslash before them.
const ESCAPES: [bool; 256] = {
    let mut escapes = [false; 256];
    let all = b"\"\\/bfnrt";
    let mut at = 0;
    while at < all.len() {
        escapes[all[at] as usize] = true;
        at += 1;
    }
    escapes
};

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
    /// How many strings were read.
    pub(super) read_strings: u32,
    /// Where the reading began; everything before is known to be UTF-8.
    start: usize,
}

/// A position of the reader inside a container, with a value next. It depends only on what was read
/// before, so a text that begins with the same bytes can be read from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// Where that value begins.
    pub(super) at: usize,
    outer: usize,
    depth: usize,
    in_object: bool,
    read_strings: u32,
    /// The first word of `Levels`; there are no checkpoints deeper than that.
    levels: u64,
}

/// Receives the members of an object while it is read, down to some level; its own are on level 1.
pub(super) trait Visitor {
    /// The deepest level it receives.
    const LEVELS: usize;

    /// A member's name was read, whose first byte is at `name`. Its value begins at `value`.
    fn key(&mut self, level: usize, key: Key<'_>, name: usize, value: usize);

    /// The value of the last member of that level ended before `at`.
    fn ended(&mut self, level: usize, at: usize);

    /// Whether it needs the checkpoint before the value that begins at `at`.
    #[inline(always)]
    fn wants_checkpoint(&self, at: usize) -> bool {
        let _ = at;
        false
    }

    /// Receives that checkpoint.
    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        let _ = checkpoint;
    }
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
            read_strings: 0,
            start: 0,
        }
    }

    /// Starts at a checkpoint, in a text that begins like one that was read to its end.
    pub(super) fn resume(text: &'a [u8], nesting: usize, from: &Checkpoint) -> Self {
        Self {
            at: from.at,
            read_strings: from.read_strings,
            start: from.at,
            ..Self::new(text, nesting)
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
        !self.strings.has_non_ascii()
            || simdutf8::basic::from_utf8(&self.text[self.start..]).is_ok()
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
            b'{' | b'[' => self.container(outer, visitor),
            _ => self.scalar(),
        }
    }

    /// The rest of the outermost container around the checkpoint.
    pub(super) fn rest<E: Visitor>(
        &mut self,
        from: &Checkpoint,
        visitor: &mut E,
    ) -> Result<(), ReadError> {
        self.walk(*from, visitor)
    }

    fn container<E: Visitor>(&mut self, outer: usize, visitor: &mut E) -> Result<(), ReadError> {
        let start = Checkpoint {
            at: self.at,
            outer,
            depth: outer,
            in_object: false,
            read_strings: self.read_strings,
            levels: 0,
        };
        self.walk(start, visitor)
    }

    #[inline(always)]
    fn walk<E: Visitor>(&mut self, from: Checkpoint, visitor: &mut E) -> Result<(), ReadError> {
        let Checkpoint {
            outer,
            mut depth,
            mut in_object,
            ..
        } = from;
        let mut levels = Levels([0; DEEPEST / 64]);
        levels.0[0] = from.levels;
        loop {
            // A value starts here.
            if depth < 64 && visitor.wants_checkpoint(self.at) {
                visitor.checkpoint(Checkpoint {
                    at: self.at,
                    outer,
                    depth,
                    in_object,
                    read_strings: self.read_strings,
                    levels: levels.0[0],
                });
            }
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
        self.read_strings += 1;
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
                    if ESCAPES[usize::from(code)] {
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
