//! The name of a member of an object, as spelled in the text.

/// A member's name, as spelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    /// The text between the quotes.
    raw: &'a [u8],
    /// Whether it holds escapes.
    escaped: bool,
}

impl<'a> Key<'a> {
    #[inline(always)]
    pub(super) const fn new(raw: &'a [u8], escaped: bool) -> Self {
        Self { raw, escaped }
    }

    /// Whether the spelling has escapes.
    pub(super) fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// Whether it is that name, with or without escapes.
    #[inline]
    pub(super) fn is(&self, name: &str) -> bool {
        if self.escaped {
            return self.name(&mut [0; 16]) == Some(name.as_bytes());
        }
        self.raw == name.as_bytes()
    }

    /// The name, unescaped into `buffer`; `None` when it does not fit or is not ASCII.
    ///
    /// An escaped name (`"\u0069d"` is `id`) counts, because other readers unescape it.
    #[inline]
    pub(super) fn name<'b>(&'b self, buffer: &'b mut [u8; 16]) -> Option<&'b [u8]> {
        if !self.escaped {
            return Some(self.raw);
        }
        let mut length = 0;
        let mut rest = self.raw.iter().copied();
        while let Some(byte) = rest.next() {
            let plain = if byte == b'\\' {
                match rest.next()? {
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'f' => 12,
                    b'r' => b'\r',
                    b'u' => {
                        let mut code = 0;
                        for _ in 0..4 {
                            code = code * 16 + char::from(rest.next()?).to_digit(16)?;
                        }
                        u8::try_from(code).ok().filter(u8::is_ascii)?
                    }
                    itself => itself,
                }
            } else {
                byte
            };
            *buffer.get_mut(length)? = plain;
            length += 1;
        }
        Some(&buffer[..length])
    }
}
