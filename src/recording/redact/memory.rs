//! How the last message of a side began, in which nothing was to be found.
//!
//! Those that stream say the same again and again, but for a few words at the end. A search for
//! words goes through each message byte by byte; where a message begins with the same bytes as the
//! one before, it has been there. Nothing is taken for granted: the bytes are compared. Not here:
//! why that is enough to find all that is to be found (see `words`).

/// Bytes of a message that may be compared with the next one.
const REACH: usize = 512;

/// Bytes that are compared at a time.
const STEP: usize = 16;

/// What is remembered of the messages of one side, to look for secrets in the next one. Any will
/// do: what it says is checked.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The first bytes of the last message.
    text: Vec<u8>,
    /// So many of them have no word in them, in whole.
    free: usize,
}

impl Memory {
    /// How many bytes there are at the beginning of `text` in which no word lies as a whole, as
    /// far as that is known; and how many are the same as before.
    pub(super) fn known(&self, text: &[u8]) -> (usize, usize) {
        let alike = alike(&self.text, text);
        (alike.min(self.free), alike)
    }

    /// Remembers `text`, of which so many bytes are the same as before; the first word of it
    /// begins at `free`.
    pub(super) fn keep(&mut self, text: &[u8], alike: usize, free: usize) {
        self.text.truncate(alike);
        self.text
            .extend_from_slice(&text[alike..text.len().min(REACH)]);
        self.free = free.min(self.text.len());
    }

    /// Remembers nothing.
    pub(super) fn forget(&mut self) {
        self.free = 0;
    }
}

/// How many bytes two texts have in common at their beginning, or some fewer.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let (one, other) = (one.as_chunks::<STEP>().0, other.as_chunks::<STEP>().0);
    let same = one
        .iter()
        .zip(other)
        .take_while(|(one, other)| one == other);
    same.count() * STEP
}
