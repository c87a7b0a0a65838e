//! The name of a member of an object, as spelled in the text.

use std::borrow::Cow;

use super::text::unescaped;

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
        match self.escaped {
            true => *self.name() == *name.as_bytes(),
            false => self.raw == name.as_bytes(),
        }
    }

    /// The name, unescaped: an escaped one (`"\u0069d"` is `id`) counts, because other readers
    /// unescape it.
    #[inline]
    pub(super) fn name(&self) -> Cow<'a, [u8]> {
        match self.escaped {
            true => Cow::Owned(unescaped(self.raw).into_owned().into_bytes()),
            false => Cow::Borrowed(self.raw),
        }
    }
}
