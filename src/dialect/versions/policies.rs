//! What is done where the two versions leave a choice.

use std::time::Duration;

/// The policies of the conversion between v1 and v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionPolicies {
    /// The client's `initialize` is sent with the members of both versions.
    pub hybrid_initialize: bool,
    /// When a v2 client's prompt is acknowledged: after this time, or with the first sign of work
    /// of the v1 agent. Zero: at once.
    pub ack_after: Duration,
    /// How long an idle state ends a turn of a v2 agent that has shown no sign of work, for a v1
    /// client.
    pub idle_grace: Duration,
    /// What a v2 agent sends between turns waits for the next prompt.
    pub buffer_out_of_turn: bool,
    /// How a v1 client is shown the terminals of a v2 agent.
    pub terminals: TerminalDisplay,
    /// A replaced message is shown to a v1 client as a further one.
    pub show_revisions: bool,
    /// A session is refused when the v2 agent cannot use one of its MCP servers.
    pub refuse_mcp: bool,
    /// A v1 client that offers its files and terminals to a v2 agent is refused.
    pub refuse_client_tools: bool,
    /// A v2 client's prompt during a turn is refused instead of queued.
    pub refuse_second_prompt: bool,
}

/// How a v1 client is shown the terminals of a v2 agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalDisplay {
    /// By the `_meta` extension for clients that ask for it, else as text.
    Auto,
    /// As text.
    Text,
    /// Not at all.
    Off,
}

/// A policy that is not known, or a value that it does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(pub String);

impl Default for VersionPolicies {
    fn default() -> Self {
        Self {
            hybrid_initialize: true,
            ack_after: Duration::from_millis(500),
            idle_grace: Duration::from_millis(250),
            buffer_out_of_turn: false,
            terminals: TerminalDisplay::Auto,
            show_revisions: true,
            refuse_mcp: false,
            refuse_client_tools: false,
            refuse_second_prompt: false,
        }
    }
}
