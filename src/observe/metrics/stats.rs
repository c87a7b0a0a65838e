//! What is shown of open conversations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::agent::AgentMetrics;
use super::labels::Transport;
use conversation::Method;
use jsonrpc::Side;

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
    /// For how long the connection of the client and of the agent is lost, if it is, and how many
    /// bytes wait for the next one.
    pub away: [Option<(Duration, usize)>; 2],
    /// Requests that await the answer of a side that has sent nothing for long: that side, their
    /// methods, and for how long.
    pub silent: Vec<(Side, Method, Duration)>,
}
