//! Opens the figures of a conversation.
//!
//! Not here: keeping them (see `observe::metrics`).

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::auth::{self, Turned, Witness};
use crate::observe::metrics::{
    AgentMetrics, ConversationMetrics, Judged, Metrics, Parties, Proof, Rejection, Transport,
};
use crate::transport::{Ear, Endpoint, Exit, Hold, Link, StopStep, Watch};

/// What a conversation is to be counted under, while it does not exist yet.
pub(in crate::cli) struct Account {
    metrics: Arc<Metrics>,
    transports: [Transport; 2],
    agent: Arc<AgentMetrics>,
    since: Instant,
}

/// The agent's hold; counts what it writes to stderr.
struct Counted {
    hold: Box<dyn Hold>,
    agent: Arc<AgentMetrics>,
}

/// Counts those who are judged at the door.
#[derive(Debug)]
pub(in crate::cli) struct Turnstile(pub(in crate::cli) Arc<Metrics>);

impl Witness for Turnstile {
    fn judged(&self, proof: auth::Proof, admitted: bool) {
        let proof = match proof {
            auth::Proof::Nothing => Proof::Nothing,
            auth::Proof::User => Proof::User,
            auth::Proof::Token => Proof::Token,
            auth::Proof::Certificate => Proof::Certificate,
        };
        let how = if admitted {
            Judged::Admitted
        } else {
            Judged::Refused
        };
        self.0.auth_attempt(proof, how);
    }

    fn turned_away(&self, scheme: &str, why: Turned) {
        let why = match why {
            Turned::Auth => Rejection::Auth,
            Turned::Origin => Rejection::Origin,
            Turned::Host => Rejection::Host,
            Turned::Limit => Rejection::Limit,
            Turned::Tls => Rejection::Tls,
            Turned::Timeout => Rejection::Timeout,
            Turned::Policy => Rejection::Policy,
            Turned::Unknown => Rejection::Unknown,
            Turned::Draining => Rejection::Draining,
            Turned::Handshake => Rejection::Handshake,
        };
        self.0.rejected(Transport::of_scheme(scheme), why);
    }
}

impl Account {
    /// For a client that came in through `door` and an agent that is about to be reached at `to`,
    /// under its name in the configuration.
    pub(in crate::cli) fn new(
        metrics: &Arc<Metrics>,
        door: Transport,
        name: &str,
        to: &Endpoint,
    ) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            transports: [door, Transport::of_scheme(to.scheme())],
            agent: metrics.agent(name),
            since: Instant::now(),
        }
    }

    /// What the agent is called in the configuration.
    pub(in crate::cli) fn agent(&self) -> String {
        self.agent.name().to_owned()
    }

    /// Where it is counted how the recording went.
    pub(in crate::cli) fn recordings(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// There is no agent.
    pub(in crate::cli) fn fail(self) {
        self.agent.started(false);
        self.metrics
            .rejected(self.transports[0], Rejection::NoAgent);
    }

    /// The conversation begins. What the agent writes to stderr is counted from here.
    /// So many bytes may wait for either side.
    pub(in crate::cli) fn begin(
        self,
        client: &Link,
        agent: &mut Link,
        room: usize,
    ) -> ConversationMetrics {
        self.agent.started(true);
        let hold = std::mem::replace(&mut agent.hold, Box::new(()));
        let mut hold = Counted {
            hold,
            agent: Arc::clone(&self.agent),
        };
        hold.hear_stderr(Box::new(|_| ()));
        agent.hold = Box::new(hold);
        self.metrics.begin(Parties {
            client: client.peer.name.clone(),
            transports: self.transports,
            agent: self.agent,
            since: self.since,
            room,
        })
    }
}

impl Hold for Counted {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        self.hold.poll_exit(cx)
    }

    fn signal(&mut self, step: StopStep) {
        self.hold.signal(step);
    }

    fn hear_stderr(&mut self, ear: Ear) {
        let agent = Arc::clone(&self.agent);
        self.hold.hear_stderr(Box::new(move |bytes| {
            agent.stderr(bytes.len());
            ear(bytes);
        }));
    }

    fn watch(&mut self, watch: Watch) {
        self.hold.watch(watch);
    }

    fn discretion(&self) -> fn(&str) -> String {
        self.hold.discretion()
    }

    fn stderr_tail(&self) -> String {
        self.hold.stderr_tail()
    }
}
