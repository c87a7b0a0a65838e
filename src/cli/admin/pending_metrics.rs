//! Registers a conversation with the metrics.

use std::sync::Arc;
use std::time::Instant;

use auth::RejectReason;
use observe::metrics::{AgentMetrics, ConversationMetrics, Metrics, Parties, Transport};
use transport::{Endpoint, Link};

/// The metrics of a conversation that has not begun yet.
pub(in crate::cli) struct PendingMetrics {
    pub(in crate::cli) metrics: Arc<Metrics>,
    pub(in crate::cli) agent: Arc<AgentMetrics>,
    transports: [Transport; 2],
    since: Instant,
}

impl PendingMetrics {
    /// For a client of a listener of this transport and the agent at `to`, under its configured
    /// name.
    pub(in crate::cli) fn new(
        metrics: &Arc<Metrics>,
        transport: Transport,
        name: &str,
        to: &Endpoint,
    ) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            agent: metrics.agent(name),
            transports: [transport, Transport::of_scheme(to.scheme())],
            since: Instant::now(),
        }
    }

    /// Counts a failure to reach the agent.
    pub(in crate::cli) fn fail(self) {
        self.agent.started(false);
        self.metrics
            .rejected(self.transports[0], RejectReason::NoAgent);
    }

    /// Begins the conversation. `room` is how many bytes may wait for either side.
    pub(in crate::cli) fn begin(self, client: &Link, room: usize) -> ConversationMetrics {
        self.agent.started(true);
        self.metrics.begin(Parties {
            client: client.peer.name.clone(),
            transports: self.transports,
            agent: self.agent,
            since: self.since,
            room,
        })
    }
}
