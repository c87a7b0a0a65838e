//! What is done where the two versions leave a choice.

use std::time::Duration;

use jsonrpc::parse_duration;

/// The policies of the conversion between v1 and v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionPolicies {
    /// Whose `initialize` is sent with the members of both versions.
    pub hybrid_initialize: HybridInitialize,
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

/// Whose first `initialize` is sent with the members of both versions. No agent that speaks only v2
/// was found that accepts an offer of v1 for them, while what passes between two sides of v1 is not
/// to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HybridInitialize {
    /// That of clients of v2.
    V2,
    /// That of all.
    On,
    /// None.
    Off,
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
            hybrid_initialize: HybridInitialize::V2,
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

impl VersionPolicies {
    /// The names of the policies, with the values that each takes; the first is the default.
    pub const NAMES: [(&str, &str); 9] = [
        ("hybrid-initialize", "v2, on, off"),
        ("ack-after", "500ms, any time; 0s: at once"),
        ("idle-grace", "250ms, any time"),
        ("out-of-turn", "forward, buffer"),
        ("terminals", "auto, text, off"),
        ("message-replace", "revision, ignore"),
        ("mcp-unsupported", "drop, error"),
        ("client-tools", "drop, reject"),
        ("second-prompt", "queue, error"),
    ];

    /// Sets the policy of that name.
    ///
    /// # Errors
    /// There is no such policy, or it has no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PolicyError> {
        let known = Self::NAMES.iter().find(|(known, _)| *known == name);
        let Some((_, values)) = known else {
            let names = Self::NAMES.map(|(name, _)| name).join(", ");
            let what = format!("there is no policy {name}: use {names}");
            return Err(PolicyError(what));
        };
        let at = values.split(", ").position(|known| known == value);
        match (name, at, parse_duration(value)) {
            ("ack-after", _, Ok(time)) => self.ack_after = time,
            ("idle-grace", _, Ok(time)) => self.idle_grace = time,
            ("hybrid-initialize", Some(at), _) => {
                use HybridInitialize::{Off, On, V2};
                self.hybrid_initialize = [V2, On, Off][at];
            }
            ("terminals", Some(at), _) => {
                use TerminalDisplay::{Auto, Off, Text};
                self.terminals = [Auto, Text, Off][at];
            }
            ("out-of-turn", Some(at), _) => self.buffer_out_of_turn = at == 1,
            ("message-replace", Some(at), _) => self.show_revisions = at == 0,
            ("mcp-unsupported", Some(at), _) => self.refuse_mcp = at == 1,
            ("client-tools", Some(at), _) => self.refuse_client_tools = at == 1,
            ("second-prompt", Some(at), _) => self.refuse_second_prompt = at == 1,
            _ => {
                let what = format!("{name} has no value {value}: it takes {values}");
                return Err(PolicyError(what));
            }
        }
        Ok(())
    }
}
