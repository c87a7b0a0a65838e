//! The keys that a gate accepts, and the interface to their store.
//!
//! A new token is valid at once, so the source is asked for changes before an unknown token is
//! refused.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::token::Digest;
use super::{Agents, Keyring, Principal, Token};

/// Provides the keys that a gate accepts. Called during authentication, so it must return quickly.
pub trait KeySource: Send + Sync + fmt::Debug {
    /// The keys, if they have changed since the last call.
    fn changed(&self) -> Option<Keys>;
}

/// Knows tokens that are valid once.
pub trait PassSource: Send + Sync + fmt::Debug {
    /// The principal of such a token, which is not valid any more then.
    fn take(&self, pass: &[u8]) -> Option<Arc<Principal>>;
}

/// The keys that a gate accepts.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pub(super) own: Option<Digest>,
    pub(super) ring: Keyring,
    names: Option<Arc<BTreeMap<String, Agents>>>,
}

impl Keys {
    /// The user's own token, which is not in the ring because it may be any text, all other tokens,
    /// and the names that are valid in certificates, with the agents of each. Without names every
    /// certificate signed by one of our authorities is valid, for every agent.
    #[must_use]
    pub fn new(
        own: Option<&Token>,
        ring: Keyring,
        names: Option<Arc<BTreeMap<String, Agents>>>,
    ) -> Self {
        let own = own.map(Token::digest);
        Self { own, ring, names }
    }

    /// The agents that a certificate of that name may use; `None` when it is not valid.
    pub(super) fn agents_of(&self, name: &str) -> Option<Agents> {
        match &self.names {
            None => Some(Agents::All),
            Some(names) => names.get(name).cloned(),
        }
    }
}
