//! Caches the beginning of the last message of a side in which no word of `words` was found.
//!
//! Streamed messages differ in a few bytes at the end. The search for words goes through a message
//! byte by byte; bytes equal to the beginning of the message before need not be searched again.
//! The bytes are always compared. `words` explains why nothing is missed.

/// Bytes of a message that may be compared with the next one.
const MAX_LEN: usize = 512;

/// Bytes that are compared at a time.
const STEP: usize = 16;

/// The search state that is kept between the messages of one side. Any state is valid, because the
/// bytes are compared.
#[derive(Clone, Debug, Default)]
pub struct PrefixCache {
    /// The first bytes of the last message.
    text: Vec<u8>,
    /// The number of these bytes that contain no whole word.
    clean_len: usize,
}

impl PrefixCache {
    /// The number of bytes at the beginning of `text` that are known to contain no whole word, and
    /// the number of bytes equal to the message before.
    pub(super) fn lookup(&self, text: &[u8]) -> (usize, usize) {
        let common = common_prefix(&self.text, text);
        (common.min(self.clean_len), common)
    }

    /// Stores `text`, of which `common` bytes equal the message before; its first word begins at
    /// `clean_len`.
    pub(super) fn store(&mut self, text: &[u8], common: usize, clean_len: usize) {
        self.text.truncate(common);
        self.text
            .extend_from_slice(&text[common..text.len().min(MAX_LEN)]);
        self.clean_len = clean_len.min(self.text.len());
    }

    /// Invalidates the cache.
    pub(super) fn forget(&mut self) {
        self.clean_len = 0;
    }
}

/// The length of the common prefix of two texts, rounded down.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (one, other) = (one.as_chunks::<STEP>().0, other.as_chunks::<STEP>().0);
    let same = one
        .iter()
        .zip(other)
        .take_while(|(one, other)| one == other);
    same.count() * STEP
}
