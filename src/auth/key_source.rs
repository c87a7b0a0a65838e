//! The interface to the store of the keys.
//!
//! A new token is valid at once, so the source is asked for changes before an unknown token is
//! refused.

use std::fmt;

use super::Keys;

/// Provides the keys that a gate accepts. Called during authentication, so it must return quickly.
pub trait KeySource: Send + Sync + fmt::Debug {
    /// The keys, if they have changed since the last call.
    fn changed(&self) -> Option<Keys>;
}
