//! The served agents, each with its own connection, and which of them a client may use.

use std::sync::Arc;

use futures_util::future::try_join_all;
use parking_lot::RwLock;
use uuid::Uuid;

use super::agent_connection::{AgentConnection, AgentContext};
use crate::agent_connect::api::agent::AgentInfo;
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::ids;
use crate::agent_connect::settings::ServedAgent;
use crate::auth::{ONLY_AGENT, Principal};

/// The connections to the served agents.
pub(super) struct AgentConnections {
    pub(super) context: Arc<AgentContext>,
    conns: RwLock<Vec<Arc<AgentConnection>>>,
}

/// The client of a request.
pub(super) struct Requester {
    pub(super) principal: Arc<Principal>,
    /// The owner name under which its threads and runs are stored.
    pub(super) owner: Arc<str>,
    /// The default agent of clients that name none.
    pub(super) default_agent: Option<String>,
}

impl AgentConnections {
    pub(super) fn new(context: AgentContext, agents: &[ServedAgent]) -> Self {
        let context = Arc::new(context);
        let conns = agents
            .iter()
            .map(|offer| AgentConnection::new(&context, offer.clone()));
        Self {
            conns: RwLock::new(conns.collect()),
            context,
        }
    }

    /// Replaces the served agents and returns the connections to those that were removed. An agent
    /// that stays keeps its connection; only its default permission changes.
    pub(super) fn update(&self, agents: &[ServedAgent]) -> Vec<Arc<AgentConnection>> {
        let mut conns = self.conns.write();
        let mut before = std::mem::take(&mut *conns);
        for offer in agents {
            let same = before
                .iter()
                .position(|line| line.config.name == offer.name);
            conns.push(match same {
                Some(same) => {
                    let line = before.remove(same);
                    line.update(offer);
                    line
                }
                None => AgentConnection::new(&self.context, offer.clone()),
            });
        }
        before
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<AgentConnection>> {
        let conns = self.conns.read();
        conns.clone()
    }

    /// Those that a client may use.
    pub(super) fn usable_by(&self, requester: &Requester) -> Vec<Arc<AgentConnection>> {
        let mut conns = self.all();
        conns.retain(|line| may_use(&requester.principal, line));
        conns
    }

    /// Whether a client may use any of them.
    pub(super) fn has_any_for(&self, principal: &Principal) -> bool {
        self.all().iter().any(|line| may_use(principal, line))
    }

    /// The agent of that id or configured name, if the client may use it.
    pub(super) async fn find(
        &self,
        requester: &Requester,
        named: &str,
    ) -> Result<Arc<AgentConnection>, ApiError> {
        let id = ids::parse(named);
        for line in self.usable_by(requester) {
            let found = match id {
                Some(id) => line.id().await? == id,
                None => line.config.name.as_deref() == Some(named),
            };
            if found {
                return Ok(line);
            }
        }
        Err(ApiError::not_found("there is no such agent"))
    }

    /// The agent for a client that names none: the default one, or the only one.
    pub(super) fn default_for(&self, requester: &Requester) -> Option<Arc<AgentConnection>> {
        let conns = self.usable_by(requester);
        let named = |line: &&Arc<AgentConnection>| line.config.name == requester.default_agent;
        let default = requester.default_agent.as_ref();
        let default = default.and_then(|_| conns.iter().find(named));
        default.or_else(|| only(&conns)).cloned()
    }

    /// The only agent that a client may use; `None` when there are several.
    pub(super) fn only_for(&self, requester: &Requester) -> Option<Arc<AgentConnection>> {
        only(&self.usable_by(requester)).cloned()
    }

    /// The agent of that id, without an access check.
    pub(super) async fn by_id(&self, id: Uuid) -> Option<Arc<AgentConnection>> {
        for line in self.all() {
            if line.id().await.is_ok_and(|known| known == id) {
                return Some(line);
            }
        }
        None
    }

    /// The descriptions of all agents that a client may use, requested in parallel.
    pub(super) async fn infos(
        &self,
        requester: &Requester,
    ) -> Result<Vec<Arc<AgentInfo>>, ApiError> {
        let lost = |_| ApiError::unavailable("an agent could not be queried");
        let infos = self.usable_by(requester).into_iter().map(|line| {
            // In a task of its own: a client that disconnects must not cancel it for others.
            let info = tokio::spawn(async move { line.info().await });
            async move { info.await.map_err(lost)? }
        });
        try_join_all(infos).await
    }
}

fn may_use(principal: &Principal, line: &AgentConnection) -> bool {
    principal.may_use(line.config.name.as_deref().unwrap_or(ONLY_AGENT))
}

fn only(conns: &[Arc<AgentConnection>]) -> Option<&Arc<AgentConnection>> {
    match conns {
        [only] => Some(only),
        _ => None,
    }
}
