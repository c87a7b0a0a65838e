//! The served agents, each with its own connection, and which of them a client may use.

use std::sync::Arc;

use futures_util::future::try_join_all;
use parking_lot::RwLock;

use super::connection::{AgentConnection, AgentContext};
use crate::api::agent::{AgentInfo, parse_id};
use crate::api::error::{ApiError, ApiResult};
use crate::settings::ServedAgent;
use auth::{ONLY_AGENT, Principal};

/// The connections to the served agents.
pub(super) struct Agents {
    context: Arc<AgentContext>,
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

impl Agents {
    pub(super) fn new(context: AgentContext, agents: &[ServedAgent]) -> Self {
        let new = Self {
            conns: RwLock::default(),
            context: Arc::new(context),
        };
        new.update(agents);
        new
    }

    /// Replaces the served agents and returns the connections to those that were removed. An agent
    /// that stays keeps its connection; only its default permission changes.
    pub(super) fn update(&self, agents: &[ServedAgent]) -> Vec<Arc<AgentConnection>> {
        let mut conns = self.conns.write();
        let mut before = std::mem::take(&mut *conns);
        for offer in agents {
            let same = before
                .iter()
                .position(|conn| conn.config.name == offer.name);
            let kept = same.map(|same| before.remove(same));
            let conn = kept.unwrap_or_else(|| AgentConnection::new(&self.context, offer.clone()));
            conn.update(offer);
            conns.push(conn);
        }
        before
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<AgentConnection>> {
        self.conns.read().clone()
    }

    /// Those that a client may use.
    pub(super) fn usable_by(&self, principal: &Principal) -> Vec<Arc<AgentConnection>> {
        let mut conns = self.all();
        let name = |conn: &AgentConnection| conn.config.name.clone();
        conns.retain(|conn| principal.may_use(name(conn).as_deref().unwrap_or(ONLY_AGENT)));
        conns
    }

    /// The agent of that id or configured name, if the client may use it.
    pub(super) async fn find(
        &self,
        requester: &Requester,
        named: &str,
    ) -> ApiResult<Arc<AgentConnection>> {
        let id = parse_id(named);
        for conn in self.usable_by(&requester.principal) {
            let found = match id {
                Some(id) => conn.id().await? == id,
                None => conn.config.name.as_deref() == Some(named),
            };
            if found {
                return Ok(conn);
            }
        }
        Err(ApiError::not_found("there is no such agent"))
    }

    /// The agent for a client that names none: the default one, or the only one.
    pub(super) fn default_for(&self, requester: &Requester) -> Option<Arc<AgentConnection>> {
        let conns = self.usable_by(&requester.principal);
        let is_default = |conn: &&Arc<AgentConnection>| conn.config.name == requester.default_agent;
        let named = requester.default_agent.as_ref();
        let default = named.and_then(|_| conns.iter().find(is_default).cloned());
        default.or_else(|| only(&conns))
    }

    /// The descriptions of all agents that a client may use, requested in parallel.
    pub(super) async fn infos(&self, requester: &Requester) -> ApiResult<Vec<Arc<AgentInfo>>> {
        let lost = |_| ApiError::unavailable("an agent could not be queried");
        let conns = self.usable_by(&requester.principal).into_iter();
        try_join_all(conns.map(|conn| {
            // In a task of its own: a client that disconnects must not cancel it for others.
            let info = tokio::spawn(async move { conn.info().await });
            async move { info.await.map_err(lost)? }
        }))
        .await
    }
}

/// The only one of these agents; `None` when there are several.
pub(super) fn only(conns: &[Arc<AgentConnection>]) -> Option<Arc<AgentConnection>> {
    match conns {
        [only] => Some(only.clone()),
        _ => None,
    }
}
