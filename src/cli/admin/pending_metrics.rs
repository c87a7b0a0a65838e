//! Registers a conversation with the metrics.

use std::sync::Arc;
use std::time::Instant;

use crate::auth::{self, AuthEvents, RejectReason};
use crate::observe::metrics::{
    AgentMetrics, AuthOutcome, ConversationMetrics, CredentialLabel, Metrics, Parties, Rejection,
    Transport,
};
use crate::transport::{Endpoint, Link};

/// The metrics of a conversation that has not begun yet.
pub(in crate::cli) struct PendingMetrics {
    metrics: Arc<Metrics>,
    transports: [Transport; 2],
    agent: Arc<AgentMetrics>,
    since: Instant,
}

/// Counts the results of authentication.
#[derive(Debug)]
pub(in crate::cli) struct AuthCounter(pub(in crate::cli) Arc<Metrics>);

impl AuthEvents for AuthCounter {
    fn authenticated(&self, proof: auth::CredentialKind, admitted: bool) {
        let proof = match proof {
            auth::CredentialKind::Nothing => CredentialLabel::Nothing,
            auth::CredentialKind::User => CredentialLabel::User,
            auth::CredentialKind::Token => CredentialLabel::Token,
            auth::CredentialKind::Certificate => CredentialLabel::Certificate,
        };
        let how = if admitted {
            AuthOutcome::Admitted
        } else {
            AuthOutcome::Refused
        };
        self.0.auth_attempt(proof, how);
    }

    fn rejected(&self, scheme: &str, why: RejectReason) {
        let why = match why {
            RejectReason::Auth => Rejection::Auth,
            RejectReason::Origin => Rejection::Origin,
            RejectReason::Host => Rejection::Host,
            RejectReason::Limit => Rejection::Limit,
            RejectReason::Tls => Rejection::Tls,
            RejectReason::Timeout => Rejection::Timeout,
            RejectReason::Policy => Rejection::Policy,
            RejectReason::Unknown => Rejection::Unknown,
            RejectReason::Draining => Rejection::Draining,
            RejectReason::Handshake => Rejection::Handshake,
        };
        self.0.rejected(Transport::of_scheme(scheme), why);
    }
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
            transports: [transport, Transport::of_scheme(to.scheme())],
            agent: metrics.agent(name),
            since: Instant::now(),
        }
    }

    /// The metrics of the agent.
    pub(in crate::cli) fn agent(&self) -> Arc<AgentMetrics> {
        Arc::clone(&self.agent)
    }

    /// Counts the results of recordings.
    pub(in crate::cli) fn recordings(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Counts a failure to reach the agent.
    pub(in crate::cli) fn fail(self) {
        self.agent.started(false);
        self.metrics
            .rejected(self.transports[0], Rejection::NoAgent);
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
