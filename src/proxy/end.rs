//! The outcome of a conversation. It is not an error: all conversations end.

use conversation::Cause;
use jsonrpc::Exit;
use observe::Counts;

/// The outcome of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// What ended it first.
    pub cause: Cause,
    /// How the agent's process ended, when that is known.
    pub exit: Option<Exit>,
    /// Whether the agent's link was lost before a shutdown began.
    pub lost: bool,
    /// Whether the agent has answered any request.
    pub answered: bool,
    /// Why the agent was lost, rejected or stopped, as a clause: `it broke off: …`.
    pub agent_error: Option<String>,
    /// How the agent's server refused the connection, if it did.
    pub refused: Option<ConnectRefusal>,
    /// Why the client could not be sent everything, unless it had disconnected.
    pub client_error: Option<String>,
    /// The counts of what passed.
    pub counts: Counts,
}

impl End {
    /// Whether the agent ended by itself, or left a request open, and had never answered one.
    #[must_use]
    pub fn is_without_answer(&self) -> bool {
        let incomplete =
            self.cause == Cause::AgentExited || self.counts.note("answered_for_peer") > 0;
        incomplete && !self.answered && !matches!(self.cause, Cause::Stopped | Cause::Unrecorded)
    }
}

/// How the agent's server refused the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectRefusal {
    /// It is not available at present.
    Unavailable,
    /// It does not admit us.
    Forbidden,
    /// It does not speak the expected protocol.
    Protocol,
}
