//! The served agents, each with its own connection, and which of them a client may use.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::line::Line;
use super::settings::Offer;
use crate::agent_connect::agent::Agent;
use crate::agent_connect::fault::Fault;
use crate::agent_connect::route::Named;
use crate::agent_connect::run_request::Permissions;
use crate::agent_connect::uuid::Uuid;
use crate::auth::{ONLY_AGENT, Principal};
use crate::jsonrpc::Limits;
use crate::transport::Arrival;

/// The connections to the served agents.
pub(super) struct Agents {
    pub(super) ground: Arc<Ground>,
    lines: RwLock<Vec<Arc<Line>>>,
}

/// The context of all connections.
pub(super) struct Ground {
    /// The URL of the service.
    pub(super) base: String,
    /// The answer to permission requests for clients that cannot be asked.
    pub(super) unasked: Permissions,
    pub(super) limits: Arc<Limits>,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    /// Cancelled when no more links may be opened.
    pub(super) closing: CancellationToken,
}

/// The client of a request.
pub(super) struct Asker {
    pub(super) principal: Arc<Principal>,
    /// The owner name under which its threads and runs are stored.
    pub(super) owner: Arc<str>,
    /// The default agent of clients that name none.
    pub(super) usual: Option<String>,
}

impl Agents {
    pub(super) fn new(ground: Ground, offers: &[Offer]) -> Self {
        let ground = Arc::new(ground);
        let lines = offers.iter().map(|offer| Line::new(&ground, offer.clone()));
        Self {
            lines: RwLock::new(lines.collect()),
            ground,
        }
    }

    /// Replaces the served agents and returns the connections to those that were removed. An agent
    /// that stays keeps its connection; only its default permission changes.
    pub(super) fn renew(&self, offers: &[Offer]) -> Vec<Arc<Line>> {
        let mut lines = self.lines.write();
        let mut before = std::mem::take(&mut *lines);
        for offer in offers {
            let same = before.iter().position(|line| line.offer.name == offer.name);
            lines.push(match same {
                Some(same) => {
                    let line = before.remove(same);
                    line.renew(offer);
                    line
                }
                None => Line::new(&self.ground, offer.clone()),
            });
        }
        before
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<Line>> {
        let lines = self.lines.read();
        lines.clone()
    }

    /// Those that a client may use.
    pub(super) fn of(&self, asker: &Asker) -> Vec<Arc<Line>> {
        let mut lines = self.all();
        lines.retain(|line| may_use(&asker.principal, line));
        lines
    }

    /// Whether a client may use any of them.
    pub(super) fn has_any_for(&self, principal: &Principal) -> bool {
        self.all().iter().any(|line| may_use(principal, line))
    }

    /// The agent of that name or id, if the client may use it.
    pub(super) async fn find(&self, asker: &Asker, named: &Named) -> Result<Arc<Line>, Fault> {
        for line in self.of(asker) {
            let found = match named {
                Named::Name(name) => line.offer.name.as_ref() == Some(name),
                Named::Id(id) => line.id().await? == *id,
            };
            if found {
                return Ok(line);
            }
        }
        Err(Fault::unknown("there is no such agent"))
    }

    /// The agent for a client that names none: the default one, or the only one.
    pub(super) fn usual(&self, asker: &Asker) -> Option<Arc<Line>> {
        let lines = self.of(asker);
        let is_usual = |line: &&Arc<Line>| line.offer.name == asker.usual;
        let usual = lines
            .iter()
            .find(is_usual)
            .filter(|_| asker.usual.is_some());
        usual.or_else(|| only(&lines)).cloned()
    }

    /// The only agent that a client may use; `None` when there are several.
    pub(super) fn sole(&self, asker: &Asker) -> Option<Arc<Line>> {
        only(&self.of(asker)).cloned()
    }

    /// The agent of that id, without an access check.
    pub(super) async fn known(&self, id: Uuid) -> Option<Arc<Line>> {
        for line in self.all() {
            if line.id().await.is_ok_and(|known| known == id) {
                return Some(line);
            }
        }
        None
    }

    /// The descriptions of all agents that a client may use, requested in parallel.
    pub(super) async fn introduced(&self, asker: &Asker) -> Result<Vec<Arc<Agent>>, Fault> {
        let asked = self.of(asker).into_iter().map(|line| {
            // In a task of its own: a client that disconnects must not cancel it for others.
            tokio::spawn(async move { line.introduced().await })
        });
        let asked: Vec<_> = asked.collect();
        let mut known = Vec::new();
        for agent in asked {
            let lost = |_| Fault::later("an agent could not be queried");
            known.push(agent.await.map_err(lost)??);
        }
        Ok(known)
    }
}

fn may_use(principal: &Principal, line: &Line) -> bool {
    principal.may_use(line.offer.name.as_deref().unwrap_or(ONLY_AGENT))
}

fn only(lines: &[Arc<Line>]) -> Option<&Arc<Line>> {
    match lines {
        [only] => Some(only),
        _ => None,
    }
}
