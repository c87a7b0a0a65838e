//! The part that a relay can have among many machines, as `serve` sees it.

use std::sync::Arc;

use super::agent_pool::{Agent, ListenerState};
use crate::cli::common::RelayContext;
use crate::cli::config::AgentPart;
use transport::{BoxFuture, Endpoint, Link, Peer, Setup};

/// The part of a relay.
pub(super) type Role = Arc<dyn Part>;

/// A relay that works alone.
pub(super) struct Alone;

impl Part for Alone {}

/// A part. Each can do some of this.
pub(super) trait Part: Send + Sync {
    /// The agents, if they are not those of the configuration.
    fn agents(&self) -> Option<Result<Vec<AgentPart>, String>> {
        None
    }

    /// Waits until [`Self::agents`] has others.
    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Prepares the context of a plan; `before` is that of the one before.
    fn set_up(&self, _: &mut RelayContext, _before: Option<&RelayContext>) {}

    /// Prepares how an agent is reached.
    fn set_up_agent(&self, _: &mut Setup) {}

    /// How an agent is reached for this client, where that depends on the client.
    fn setup_for(&self, _client: &Peer, _: &Agent) -> Option<Setup> {
        None
    }

    /// The listener besides those of the configuration, which begins with what `all` have.
    fn listener(&self, _all: ListenerState) -> Option<(Endpoint, ListenerState)> {
        None
    }

    /// The link of a client of `agent`, which was reached with that setup, for its conversation here.
    fn own(&self, client: Link, _: &Agent, _: &Setup) -> Link {
        client
    }

    /// All listeners are open.
    fn announce(self: Arc<Self>) {}

    /// No new conversations begin.
    fn drain(&self) {}

    /// The relay ends.
    fn retire(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Passes on the connection of a link that ends elsewhere.
    fn forward<'p>(&'p self, _carrier: Link, _: &'p ListenerState) -> BoxFuture<'p, ()> {
        Box::pin(async {})
    }
}
