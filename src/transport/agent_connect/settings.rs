//! How Agent Connect is served, as far as its operator chooses.
//!
//! Not here: how that is read from the command line (see `app::agent_connect`).

use std::path::PathBuf;

use crate::agent_connect::wish::Permissions;

/// How Agent Connect is served.
#[derive(Clone, Debug)]
pub struct AgentConnect {
    /// The names of the agents; one that has none is called what it calls itself. One agent, so far.
    pub agents: Vec<Option<String>>,
    /// Where threads and runs are kept; in memory when not given.
    pub store: Option<PathBuf>,
    /// What is answered to an agent for those who cannot be asked.
    pub unasked: Permissions,
    /// Who may be called back although it is within our network, or in clear: `HOST` or `HOST:PORT`.
    pub callbacks: Vec<String>,
}

impl Default for AgentConnect {
    fn default() -> Self {
        Self {
            agents: vec![None],
            store: None,
            unasked: Permissions::Reject,
            callbacks: Vec::new(),
        }
    }
}
