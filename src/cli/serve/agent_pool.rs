//! The agents of `serve`, and what limits their clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cli::admission::AdmissionControl;
use crate::cli::common::RelayContext;
use crate::cli::config::{AgentPart, ListenerPart};
use auth::ONLY_AGENT;
use conversation::DialectChoice;
use proxy::ConversationStore;
use transport::{Endpoint, Peer, PeerKind, Setup};

/// One agent.
pub(super) struct Agent {
    /// Its configuration; the agent of the command line has no name.
    pub(super) part: AgentPart,
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
    pub(super) all: Vec<Arc<Agent>>,
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

/// The number of connections. Their limit is an argument, because a reload can change it while
/// clients are connected.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionLimit(Arc<AtomicUsize>);

/// A counted connection, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot(Arc<AtomicUsize>);

impl Agent {
    /// The name for metrics and messages.
    pub(super) fn display_name(&self) -> &str {
        self.part.name.as_deref().unwrap_or(ONLY_AGENT)
    }

    /// Whether a client's sessions need a folder that exists here: the agent runs on this machine,
    /// and the client may be elsewhere.
    pub(super) fn checks_folder_of(&self, client: &Peer) -> bool {
        let is_here = matches!(self.endpoint, Endpoint::Exec(_));
        self.part.check_folder && is_here && client.kind != PeerKind::Parent
    }
}

impl AgentPool {
    /// The default is the agent of that name, or else the only one.
    pub(super) fn new(all: Vec<Arc<Agent>>, default: Option<&str>) -> Self {
        let mut pool = Self { all, default: None };
        let named = default.and_then(|name| pool.find(Some(name)).cloned());
        pool.default = named.or_else(|| pool.only());
        pool
    }

    /// The agent of that name, or the default.
    pub(super) fn find(&self, name: Option<&str>) -> Option<&Arc<Agent>> {
        match name {
            None => self.default.as_ref(),
            name => self.all.iter().find(|one| one.part.name.as_deref() == name),
        }
    }

    /// The names of all.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.all.iter().filter_map(|agent| agent.part.name.as_ref())
    }

    /// The part of the pool that a listener serves. The agent of the command line serves all.
    pub(super) fn for_listener(&self, part: &ListenerPart) -> Self {
        let mut own = self.clone();
        if let Some(names) = &part.agents {
            let is_own = |agent: &Arc<Agent>| {
                let name = agent.part.name.as_ref();
                name.is_none_or(|name| names.contains(name))
            };
            own.all.retain(is_own);
            own.default = own.default.take().filter(is_own).or_else(|| own.only());
        }
        if let Some(agent) = part
            .default_agent
            .as_deref()
            .and_then(|name| self.find(Some(name)))
        {
            own.default = Some(Arc::clone(agent));
        }
        own
    }

    /// The only agent, which need not be named.
    fn only(&self) -> Option<Arc<Agent>> {
        match &self.all[..] {
            [only] => Some(Arc::clone(only)),
            _ => None,
        }
    }
}

impl ConnectionLimit {
    /// Counts a connection unless there are `limit` already.
    pub(super) fn acquire(&self, limit: usize) -> Option<ConnectionSlot> {
        let more = |taken: usize| (taken < limit).then_some(taken + 1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| ConnectionSlot(Arc::clone(&self.0)))
    }
}

#[cfg(feature = "cluster")]
impl ConnectionLimit {
    /// The count.
    pub(super) fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
