//! The tokens a turn has used, as agents report them with their answer to a prompt.

use jsonrpc::names;

/// A larger number cannot be a token count: it is ignored, so that it spoils no sum.
const MAX_COUNT: u64 = 1 << 48;

names! {
    /// What tokens were spent on.
    TokenKind {
        /// What was sent to the model.
        Input = "input",
        /// What it generated.
        Output = "output",
        /// What it generated as thoughts.
        Thought = "thought",
        /// What was read from the cache.
        CachedRead = "cached_read",
        /// What was written to the cache.
        CachedWrite = "cached_write",
    }
}

/// Tokens by kind; 0 for those that are not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens([u64; TokenKind::ALL.len()]);

impl TokenKind {
    /// The member of a report that contains it.
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

    /// Whether there are fewer than `before` of a kind that every report has.
    #[must_use]
    pub fn is_less_than(&self, before: &Self) -> bool {
        let kinds = [TokenKind::Input, TokenKind::Output];
        kinds.iter().any(|kind| self.of(*kind) < before.of(*kind))
    }

    /// The sum.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(other);
        }
        self
    }

    /// The difference, at least 0.
    #[must_use]
    pub fn minus(mut self, other: &Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_sub(other);
        }
        self
    }

    /// Reads a member of a report; `false` when it is not a token count.
    pub(super) fn report(&mut self, member: &[u8], text: &[u8]) -> bool {
        let mut kinds = TokenKind::ALL.iter().copied();
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
    (count < MAX_COUNT).then_some(count)
}
