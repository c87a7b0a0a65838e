//! How Agent Connect is served, as far as its operator chooses.
//!
//! Not here: how that is read from the command line and the configuration file (see
//! `cli::agent_connect`).

use std::path::PathBuf;

use crate::agent_connect::run_request::Permissions;

/// How Agent Connect is served.
#[derive(Clone, Debug)]
pub struct AgentConnect {
    /// The agents that are served.
    pub agents: Vec<Offer>,
    /// The path below which it is served beside ACP, where ACP is listened for; nowhere when not
    /// given.
    pub beside: Option<String>,
    /// Where threads and runs are kept; in memory when not given.
    pub store: Option<PathBuf>,
    /// What is answered to an agent for those who cannot be asked.
    pub unasked: Permissions,
    /// Who may be called back although it is within our network, or in clear: `HOST` or `HOST:PORT`.
    pub callbacks: Vec<String>,
}

/// An agent that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its name by configuration; one that has none is called what it calls itself.
    pub name: Option<String>,
    /// What the configuration says of it.
    pub about: Option<String>,
    /// What it is answered for those who cannot be asked, where it is not as with the others.
    pub unasked: Option<Permissions>,
}

impl Default for AgentConnect {
    fn default() -> Self {
        Self {
            agents: vec![Offer::default()],
            beside: None,
            store: None,
            unasked: Permissions::Reject,
            callbacks: Vec::new(),
        }
    }
}
