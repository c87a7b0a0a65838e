//! Registers a conversation with the metrics.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::auth::{self, Turned, Witness};
use crate::observe::metrics::{
    AgentFigures, Instrument, Judged, Ledger, Parties, Proof, Rejection, Transport,
};
use crate::transport::{Ear, Endpoint, Exit, Hold, Link, StopStep, Watch};

/// The metrics of a conversation that has not begun yet.
pub(in crate::cli) struct Account {
    ledger: Arc<Ledger>,
    transports: [Transport; 2],
    agent: Arc<AgentFigures>,
    since: Instant,
}

/// The agent's hold; counts what the agent writes to stderr.
struct Counted {
    hold: Box<dyn Hold>,
    agent: Arc<AgentFigures>,
}

/// Counts the results of authentication.
#[derive(Debug)]
pub(in crate::cli) struct Turnstile(pub(in crate::cli) Arc<Ledger>);

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
        self.0.judged(proof, how);
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
    /// For a client of a listener of this transport and the agent at `to`, under its configured
    /// name.
    pub(in crate::cli) fn new(
        ledger: &Arc<Ledger>,
        door: Transport,
        name: &str,
        to: &Endpoint,
    ) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            transports: [door, Transport::of_scheme(to.scheme())],
            agent: ledger.agent(name),
            since: Instant::now(),
        }
    }

    /// The configured name of the agent.
    pub(in crate::cli) fn agent(&self) -> String {
        self.agent.name().to_owned()
    }

    /// Counts the results of recordings.
    pub(in crate::cli) fn recordings(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// Counts a failure to reach the agent.
    pub(in crate::cli) fn fail(self) {
        self.agent.started(false);
        self.ledger.rejected(self.transports[0], Rejection::NoAgent);
    }

    /// Begins the conversation. The agent's stderr is counted from now on. `room` is how many bytes
    /// may wait for either side.
    pub(in crate::cli) fn begin(self, client: &Link, agent: &mut Link, room: usize) -> Instrument {
        self.agent.started(true);
        let hold = std::mem::replace(&mut agent.hold, Box::new(()));
        let mut hold = Counted {
            hold,
            agent: Arc::clone(&self.agent),
        };
        hold.hear_stderr(Box::new(|_| ()));
        agent.hold = Box::new(hold);
        self.ledger.begin(Parties {
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
            agent.complained(bytes.len());
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
