//! What is kept of requests until they are answered.

use super::permissions::Asked;

/// A request of the client that the agent has not answered.
#[derive(Debug)]
pub(super) enum FromClient {
    /// A prompt for that session.
    Prompt(String),
    /// A session is opened.
    Open(Open),
    /// An option of a session is set; for `session/set_mode` and `session/set_model`, of that
    /// category.
    Option {
        session: String,
        category: Option<&'static str>,
    },
    /// That session is closed or deleted.
    Close(String),
    /// Anything else.
    Other,
}

/// A session that is opened.
#[derive(Debug)]
pub(super) struct Open {
    /// Its id; a new one has none yet.
    pub(super) session: Option<String>,
    pub(super) replays: bool,
    /// The names of MCP servers that the agent cannot start.
    pub(super) dropped: Vec<String>,
}

/// A request of the agent that the client has not answered.
#[derive(Debug)]
pub(super) enum FromAgent {
    Permission(Box<Asked>),
    Elicitation,
    Other,
}
