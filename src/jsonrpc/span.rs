//! A range of bytes inside a frame.

/// A range of bytes inside a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From `start` to `end`. Only for texts of less than 4 GiB.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: narrow(start),
            end: narrow(end),
        }
    }

    /// How many bytes it covers.
    pub(crate) const fn len(self) -> u32 {
        self.end - self.start
    }

    /// The span for a text in which the value at `place` is `len` bytes long.
    pub(super) const fn resized(self, place: Self, len: u32) -> Self {
        Self {
            start: resized(self.start, place, len),
            end: resized(self.end, place, len),
        }
    }

    /// The bytes it covers.
    ///
    /// # Panics
    /// When the span was made for another, shorter frame.
    #[must_use]
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start as usize..self.end as usize]
    }
}

/// Where the byte `at` moves to when the value at `place` becomes `len` bytes long. It must not be
/// inside of it.
pub(super) const fn resized(at: u32, place: Span, len: u32) -> u32 {
    if at < place.end {
        at
    } else {
        at - place.end + place.start + len
    }
}
