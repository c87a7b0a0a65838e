//! What the two peers have stated in `initialize`, as far as the conversion depends on it.

use crate::dialect::message::Message;

/// A protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// ACP v1.
    One,
    /// The draft of ACP v2.
    Two,
}

/// The client of v1.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientTraits {
    /// It shows boolean config options.
    pub(super) boolean_options: bool,
    /// It shows terminals that are described under `_meta` (`terminal_output`).
    pub(super) terminal_output: bool,
    /// It reads `plan_update`.
    pub(super) plans: bool,
    /// It reads `notice` updates.
    pub(super) notices: bool,
    /// It reads `compaction_*` updates.
    pub(super) compaction: bool,
    /// It shows forms for the user.
    pub(super) elicitation_form: bool,
    /// It opens URLs for the user.
    pub(super) elicitation_url: bool,
    /// What it lets the agent use, and v2 does not have: its files and terminals.
    pub(super) tools: Vec<&'static str>,
}

/// The agent of v1.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentTraits {
    pub(super) load: bool,
    pub(super) resume: bool,
    pub(super) list: bool,
    pub(super) close: bool,
    pub(super) delete: bool,
    pub(super) fork: bool,
    pub(super) logout: bool,
}

/// The agent of v2.
#[derive(Clone, Debug, Default)]
pub(super) struct NewAgentTraits {
    /// It starts MCP servers by a command (`session.mcp.stdio`).
    pub(super) mcp_stdio: bool,
}

/// The client of v2.
#[derive(Clone, Debug, Default)]
pub(super) struct NewClientTraits {
    /// It shows forms (`elicitation.form`).
    pub(super) forms: bool,
    /// It opens URLs (`elicitation.url`).
    pub(super) urls: bool,
}

impl NewClientTraits {
    /// Whether it shows that elicitation.
    pub(super) fn shows(&self, elicitation: &Message<'_>) -> bool {
        match elicitation.text_at("/mode").as_deref() {
            Some("form") | None => self.forms,
            Some("url") => self.urls,
            Some(_) => true,
        }
    }
}
