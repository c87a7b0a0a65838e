//! The two directions of translation.

use serde::Deserialize;

/// The two directions of translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the dialect to canonical.
    #[default]
    Read,
    /// From canonical to the dialect.
    Write,
}

impl Way {
    /// The word in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The other way.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
        }
    }
}
