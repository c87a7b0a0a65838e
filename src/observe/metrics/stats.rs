//! The state of an open conversation, which its observer publishes and others read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::agent::AgentMetrics;
use super::labels::Transport;
use crate::conversation::Method;

/// The parties of a conversation.
#[derive(Clone, Debug)]
pub struct Parties {
    /// The client, as in the log.
    pub client: String,
    /// The transports of the client and of the agent.
    pub transports: [Transport; 2],
    /// The agent.
    pub agent: Arc<AgentMetrics>,
    /// When the relay began to start the agent or to connect to it.
    pub since: Instant,
    /// Bytes that may be queued for either side.
    pub room: usize,
}

/// What there is to see of an open conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationStats {
    /// Its number; they are counted from 1.
    pub number: u64,
    /// The client, as in the log.
    pub client: String,
    /// The client's transport.
    pub transport: &'static str,
    /// The agent's name in the configuration.
    pub agent: String,
    /// Time since it began.
    pub age: Duration,
    /// Messages from the client and from the agent.
    pub messages: [u64; 2],
    /// Bytes of those.
    pub bytes: [u64; 2],
    /// Requests without an answer, of the client and of the agent.
    pub in_flight: [u64; 2],
    /// Open turns.
    pub turns: u64,
    /// Open sessions.
    pub sessions: u64,
    /// Notes.
    pub notes: u64,
}

/// An open conversation.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) parties: Parties,
    state: Mutex<State>,
}

/// The numbers of an open conversation that are not sums of its past.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Messages received from each side, and their bytes.
    pub(super) messages: [u64; 2],
    pub(super) bytes: [u64; 2],
    /// Open requests, by asker and method.
    pub(super) in_flight: [[u32; Method::ALL.len()]; 2],
    pub(super) turns: u64,
    pub(super) sessions: u64,
    pub(super) notes: u64,
    /// How full the agent's context is, once it has reported that.
    pub(super) context: Option<f64>,
    /// Bytes queued for each side.
    pub(super) queued: [usize; 2],
}

impl Live {
    pub(super) fn new(parties: Parties) -> Self {
        Self {
            parties,
            state: Mutex::default(),
        }
    }

    pub(super) fn publish(&self, state: &State) {
        self.state.lock().clone_from(state);
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn stats(&self, number: u64, now: Instant) -> ConversationStats {
        let state = self.state();
        let open = |methods: &[u32]| methods.iter().copied().map(u64::from).sum();
        ConversationStats {
            number,
            client: self.parties.client.clone(),
            transport: self.parties.transports[0].name(),
            agent: self.parties.agent.name().to_owned(),
            age: now.saturating_duration_since(self.parties.since),
            messages: state.messages,
            bytes: state.bytes,
            in_flight: [open(&state.in_flight[0]), open(&state.in_flight[1])],
            turns: state.turns,
            sessions: state.sessions,
            notes: state.notes,
        }
    }
}
