//! How permission requests of an agent are answered.

use serde::Deserialize;

/// How permission requests of an agent are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// By the client: the run is interrupted.
    Interrupt,
    /// Allowed, once.
    Allow,
    /// Rejected.
    Reject,
}
