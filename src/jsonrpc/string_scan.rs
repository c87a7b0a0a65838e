//! Finds the end of a string's unescaped content.
//!
//! Most bytes of most messages are inside strings, so this decides how fast scanning is. Blocks of
//! 64 bytes are classified at once, and the result is kept: short strings, which are the most
//! frequent, share a block.

use wide::u8x16;

/// Bytes that are classified together.
const BLOCK: usize = 64;

/// The result for the block that was classified last.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringScan {
    /// Where the block begins.
    block: usize,
    /// Its quotes, backslashes and control characters, one bit each from its first byte on.
    special: u64,
    /// Whether any byte so far was not ASCII.
    non_ascii: bool,
}

impl StringScan {
    /// No block was classified yet.
    pub(super) const fn new() -> Self {
        Self {
            // No position is within a block that begins there.
            block: usize::MAX - BLOCK,
            special: 0,
            non_ascii: false,
        }
    }

    /// Whether there may be bytes that are not ASCII in what was classified.
    pub(super) const fn has_non_ascii(&self) -> bool {
        self.non_ascii
    }

    /// The position of the next quote, backslash or control character, from `at` on; the end of the
    /// text, or beyond it, when there is none. For one text only; `at` does not go back.
    #[inline(always)]
    pub(super) fn end(&mut self, text: &[u8], at: usize) -> usize {
        let within = at.wrapping_sub(self.block);
        if within < BLOCK {
            let rest = self.special >> within;
            if rest != 0 {
                return at + rest.trailing_zeros() as usize;
            }
            return self.scan_blocks(text, self.block + BLOCK);
        }
        self.scan_blocks(text, at)
    }

    /// Classifies further blocks.
    #[inline(never)]
    fn scan_blocks(&mut self, text: &[u8], mut at: usize) -> usize {
        let mut rest = text.get(at..).unwrap_or_default();
        while let Some((block, behind)) = rest.split_first_chunk() {
            if let Some(special) = self.classify(block) {
                self.block = at;
                self.special = special;
                return at + special.trailing_zeros() as usize;
            }
            at += BLOCK;
            rest = behind;
        }
        let mut last = [b' '; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        match self.classify(&last) {
            Some(special) => {
                self.block = at;
                self.special = special;
                at + special.trailing_zeros() as usize
            }
            None => text.len(),
        }
    }

    /// The quotes, backslashes and control characters of a block, if there are any.
    #[inline(always)]
    fn classify(&mut self, block: &[u8; BLOCK]) -> Option<u64> {
        let (parts, _) = block.as_chunks();
        let parts = [parts[0], parts[1], parts[2], parts[3]].map(u8x16::new);
        let [a, b, c, d] = parts;
        self.non_ascii |= (a | b | c | d).to_bitmask() != 0;
        let special = parts.map(|part| {
            let quote = part.simd_eq(u8x16::splat(b'"'));
            let backslash = part.simd_eq(u8x16::splat(b'\\'));
            let control = part.simd_eq(part.min(u8x16::splat(0x1F)));
            quote | backslash | control
        });
        let [a, b, c, d] = special;
        if !(a | b | c | d).any() {
            return None;
        }
        let [a, b, c, d] = special.map(|part| u64::from(part.to_bitmask()));
        Some(a | b << 16 | c << 32 | d << 48)
    }
}
