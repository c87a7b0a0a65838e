//! Whether the relay is copied to a machine of `ssh://` where none works.

use std::fmt;
use std::sync::Arc;

use super::SshEndpoint;

/// Whether the program may be copied to a machine, asked with the reason why none works there.
pub type SshConsent = dyn Fn(&SshEndpoint, &str) -> bool + Send + Sync;

/// What is done where the relay is missing on a machine: nothing, by default.
#[derive(Clone, Default)]
pub struct SshInstall(Option<Arc<SshConsent>>);

impl SshInstall {
    /// Copies it where `consent` agrees.
    #[must_use]
    pub fn new(consent: impl Fn(&SshEndpoint, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(consent)))
    }

    pub(super) fn may(&self, at: &SshEndpoint, why: &str) -> bool {
        self.0.as_ref().is_some_and(|consent| consent(at, why))
    }
}

impl fmt::Debug for SshInstall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SshInstall")
            .field(&self.0.is_some())
            .finish()
    }
}
