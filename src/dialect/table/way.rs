//! The two directions of translation.

use schemars::JsonSchema;
use serde::Deserialize;

/// The two directions of translation.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Deserialize,
    JsonSchema
)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the dialect to canonical.
    #[default]
    Read,
    /// From canonical to the dialect.
    Write,
}

impl Way {
    /// Both ways.
    pub const BOTH: [Self; 2] = [Self::Read, Self::Write];

    /// The word in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.pick("read", "write")
    }

    /// What belongs to the dialect, in reading, or what belongs to canonical.
    #[must_use]
    pub fn pick<T>(self, dialect: T, canonical: T) -> T {
        match self {
            Self::Read => dialect,
            Self::Write => canonical,
        }
    }

    /// The other way.
    #[must_use]
    pub fn reverse(self) -> Self {
        self.pick(Self::Write, Self::Read)
    }
}
