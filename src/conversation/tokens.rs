//! What a turn has cost, as agents report it with their answer to a prompt.
//!
//! Numbers by kind, and nothing of a peer's text. Not here: where they stand in a message (see
//! `gist`), and what they add up to (see `observe::metrics`).

/// A number beyond this counts no tokens: it is left out, so that no sum is spoilt by it.
const MOST: u64 = 1 << 48;

/// What tokens were spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// What was said to the model.
    Input,
    /// What it said.
    Output,
    /// What it thought.
    Thought,
    /// What it had been said before and did not have to read again.
    CachedRead,
    /// What was kept for that.
    CachedWrite,
}

/// Tokens by kind; 0 for those of which nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens([u64; TokenKind::ALL.len()]);

impl TokenKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Input,
        Self::Output,
        Self::Thought,
        Self::CachedRead,
        Self::CachedWrite,
    ];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Thought => "thought",
            Self::CachedRead => "cached_read",
            Self::CachedWrite => "cached_write",
        }
    }

    /// The member of a report that says it.
    const fn member(self) -> &'static [u8] {
        match self {
            Self::Input => b"inputTokens",
            Self::Output => b"outputTokens",
            Self::Thought => b"thoughtTokens",
            Self::CachedRead => b"cachedReadTokens",
            Self::CachedWrite => b"cachedWriteTokens",
        }
    }
}

impl Tokens {
    /// How many of a kind.
    #[must_use]
    pub const fn of(&self, kind: TokenKind) -> u64 {
        self.0[kind as usize]
    }

    /// Whether there are fewer than `before` of a kind that no report leaves out.
    #[must_use]
    pub fn is_less_than(&self, before: &Self) -> bool {
        let kinds = [TokenKind::Input, TokenKind::Output];
        kinds.iter().any(|kind| self.of(*kind) < before.of(*kind))
    }

    /// These and others.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(other);
        }
        self
    }

    /// These without others, and never fewer than none.
    #[must_use]
    pub fn minus(mut self, other: &Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_sub(other);
        }
        self
    }

    /// A member of a report says so many; `false` when it says nothing of the kind.
    pub(super) fn report(&mut self, member: &[u8], text: &[u8]) -> bool {
        let mut kinds = TokenKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.member() == member);
        let (Some(kind), Some(count)) = (kind, count(text)) else {
            return false;
        };
        self.0[kind as usize] = count;
        true
    }
}

/// A number of tokens.
pub(super) fn count(text: &[u8]) -> Option<u64> {
    let count: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (count < MOST).then_some(count)
}
