//! The containers that are open at the current position in a JSON text.
//!
//! One bit each, in a fixed number of words, so that deep nesting costs neither stack nor memory.

/// The deepest nesting that can be followed; a higher `Limits::nesting` means this one.
pub(super) const DEEPEST: usize = 1024;

/// Which containers are open, one bit a level: set for an object, clear for an array.
pub(super) struct Levels(pub(super) [u64; DEEPEST / 64]);

impl Levels {
    #[inline]
    pub(super) fn set(&mut self, depth: usize, object: bool) {
        let (word, bit) = Self::place(depth);
        self.0[word] = self.0[word] & !(1 << bit) | u64::from(object) << bit;
    }

    #[inline]
    pub(super) fn get(&self, depth: usize) -> bool {
        let (word, bit) = Self::place(depth);
        self.0[word] >> bit & 1 == 1
    }

    /// Levels count from 1, so the deepest one can use the bit of level 0, which is never read.
    #[inline]
    fn place(depth: usize) -> (usize, usize) {
        (depth / 64 % (DEEPEST / 64), depth % 64)
    }
}
