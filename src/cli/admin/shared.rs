//! The state that the responses of the admin listener are made from.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::auth::origin::OriginPolicy;
use crate::observe::metrics::Metrics;
use crate::viewer::{Viewer, ViewerAccess};

/// The state of the relay, and what requests are checked with.
pub(super) struct Shared {
    pub(super) metrics: Arc<Metrics>,
    /// The addresses of the listeners, once they are open.
    pub(super) listeners: RwLock<Option<Vec<String>>>,
    /// Cancelled when the relay is asked to stop.
    pub(super) stop: CancellationToken,
    /// The origins of web pages that are allowed; none on a Unix socket, which pages cannot reach.
    pub(super) origins: Option<OriginPolicy>,
    /// The viewer of recordings, and the secret in its address.
    pub(super) viewer: Option<(ViewerAccess, Viewer)>,
}

impl Shared {
    /// The addresses of the listeners; none before all of them are open.
    pub(super) fn listeners(&self) -> Option<Vec<String>> {
        self.listeners.read().clone()
    }

    /// `starting`, `serving` or `draining`.
    pub(super) fn state(&self) -> &'static str {
        match (self.stop.is_cancelled(), self.listeners()) {
            (true, _) => "draining",
            (false, None) => "starting",
            (false, Some(_)) => "serving",
        }
    }
}
