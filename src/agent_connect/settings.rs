//! The configuration of Agent Connect, server and client. `cli::agent_connect` reads it from the
//! command line and the configuration file.

use std::path::PathBuf;

use super::api::interrupt::Permissions;
use transport::Setup;

/// The configuration of the Agent Connect server.
#[derive(Clone, Debug)]
pub struct AgentConnectConfig {
    /// The agents that are served.
    pub agents: Vec<ServedAgent>,
    /// The path below which Agent Connect is served on ACP's HTTP listeners; none if not given.
    pub path: Option<String>,
    /// The database file of threads and runs; in memory if not given.
    pub store: Option<PathBuf>,
    /// The answer to permission requests for clients that cannot be asked.
    pub default_permission: Permissions,
    /// Webhook hosts that are allowed although they are in a private network or use plain HTTP:
    /// `HOST` or `HOST:PORT`.
    pub callbacks: Vec<String>,
}

/// An agent that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedAgent {
    /// Its configured name; an agent without one uses the name it reports itself.
    pub name: Option<String>,
    /// Its configured description.
    pub description: Option<String>,
    /// Overrides the answer to permission requests for clients that cannot be asked.
    pub default_permission: Option<Permissions>,
}

impl Default for AgentConnectConfig {
    fn default() -> Self {
        Self {
            agents: vec![ServedAgent::default()],
            path: None,
            store: None,
            default_permission: Permissions::Reject,
            callbacks: Vec::new(),
        }
    }
}

impl AgentConnectConfig {
    /// The configuration in the settings of a transport.
    pub(super) fn of(setup: &Setup) -> Self {
        setup.extensions.get().cloned().unwrap_or_default()
    }
}
