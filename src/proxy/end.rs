//! How a conversation ended. An outcome, not an error: all conversations end.

use crate::conversation::Cause;
use crate::jsonrpc::Exit;
use crate::observe::Counts;

/// The outcome of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Who or what ended it first.
    pub cause: Cause,
    /// How the agent's process ended, when that is known.
    pub exit: Option<Exit>,
    /// Whether the agent's link broke off before anybody asked for its end.
    pub lost: bool,
    /// Whether the agent has answered any request.
    pub answered: bool,
    /// How the agent's server refused us, if it did.
    pub refused: Option<Refused>,
    /// Why the client could be told nothing more, if not because it had gone.
    pub unsaid: Option<String>,
    /// What passed.
    pub counts: Counts,
}

impl End {
    /// Whether the agent ended by itself, or left a request open, and had never answered one.
    #[must_use]
    pub fn is_without_answer(&self) -> bool {
        let asked = self.cause == Cause::AgentExited || self.counts.note("answered_for_peer") > 0;
        asked && !self.answered && !matches!(self.cause, Cause::Stopped | Cause::Unrecorded)
    }
}

/// How the agent's server refused us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It serves nobody at present.
    Unavailable,
    /// It does not let us in.
    Forbidden,
    /// It is not what it was taken for.
    Protocol,
}
