//! The agents of `serve`, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::connection_limit::ConnectionLimit;
use crate::agent_connect::ServedAgent;
use crate::auth::ONLY_AGENT;
use crate::cli::admission::AdmissionControl;
use crate::cli::agent_connect::DefaultPermission;
use crate::cli::common::RelayContext;
use crate::cli::config::{Config, ListenerPart};
use crate::conversation::DialectChoice;
use crate::proxy::ConversationStore;
use crate::transport::{Endpoint, Setup};

/// One agent.
pub(super) struct Agent {
    /// Its name; the agent on the command line has none.
    pub(super) name: Option<String>,
    pub(super) endpoint: Endpoint,
    pub(super) context: RelayContext,
    /// Limits its clients.
    pub(super) clients: ConnectionLimit,
    /// Its detached conversations; `None` if it does not wait for clients.
    pub(super) detached: Option<Arc<ConversationStore>>,
}

/// All agents.
#[derive(Clone, Default)]
pub(super) struct AgentPool {
    pub(super) named: BTreeMap<String, Arc<Agent>>,
    /// The agent of clients that name none.
    pub(super) default: Option<Arc<Agent>>,
}

/// The configuration of one listener.
#[derive(Clone)]
pub(super) struct ListenerState {
    pub(super) agents: AgentPool,
    /// The clients' dialect, where the command line gives none.
    pub(super) dialect: Option<DialectChoice>,
    /// How links are opened.
    pub(super) setup: Setup,
    /// Authenticates and counts clients.
    pub(super) admission: Arc<AdmissionControl>,
}

impl Agent {
    /// The name for metrics and messages.
    pub(super) fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(ONLY_AGENT)
    }
}

impl AgentPool {
    /// All agents; one that is also the default may occur twice.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.default.iter().chain(self.named.values())
    }

    /// The agent of that name, or the default.
    pub(super) fn find(&self, name: Option<&str>) -> Option<&Arc<Agent>> {
        match name {
            Some(name) => self.named.get(name),
            None => self.default.as_ref(),
        }
    }

    /// The agents for Agent Connect, with the file's options of each; `default_permission` is that
    /// of the command line, for all.
    pub(super) fn offers(
        &self,
        file: &Config,
        default_permission: Option<DefaultPermission>,
    ) -> Vec<ServedAgent> {
        let named = self.named.keys().map(|name| {
            let part = file.agents.get(name);
            let default_permission = default_permission.or_else(|| part?.default_permission);
            ServedAgent {
                name: Some(name.clone()),
                description: part.and_then(|part| part.description.clone()),
                default_permission: default_permission.map(DefaultPermission::permissions),
            }
        });
        let named: Vec<ServedAgent> = named.collect();
        match named.is_empty() {
            true => vec![ServedAgent::default()],
            false => named,
        }
    }

    /// The part of the pool that a listener serves.
    pub(super) fn for_listener(&self, part: &ListenerPart) -> Self {
        let mut own = self.clone();
        if self.named.is_empty() {
            // There is only the agent of the command line.
            return own;
        }
        if let Some(names) = &part.agents {
            own.named.retain(|name, _| names.contains(name));
            let has =
                |agent: &Arc<Agent>| agent.name.as_ref().is_some_and(|name| names.contains(name));
            own.default = own.default.filter(has).or_else(|| only(&own.named));
        }
        if let Some(name) = &part.default_agent {
            own.default = self.named.get(name).cloned();
        }
        own
    }
}

/// The only agent, which need not be named.
pub(super) fn only(named: &BTreeMap<String, Arc<Agent>>) -> Option<Arc<Agent>> {
    let mut all = named.values();
    all.next().filter(|_| all.next().is_none()).cloned()
}
