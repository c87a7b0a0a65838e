//! How a conversation ended. An outcome, not an error: all conversations end.

use crate::core::Cause;
use crate::tap::Counts;
use crate::wire::Exit;

/// The outcome of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Who or what ended it first.
    pub cause: Cause,
    /// How the agent's process ended, when that is known.
    pub exit: Option<Exit>,
    /// Whether the agent's link broke off before anybody asked for its end.
    pub lost: bool,
    /// Whether the agent's server did not let us in.
    pub forbidden: bool,
    /// Why the client could be told nothing more, if not because it had gone.
    pub unsaid: Option<String>,
    /// What passed.
    pub counts: Counts,
}
