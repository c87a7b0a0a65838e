//! The agents that are served, each on a line of its own, and which of them somebody may use.
//!
//! Not here: what is said to them (see `line`).

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

/// The agents that are served.
pub(super) struct Agents {
    pub(super) ground: Arc<Ground>,
    lines: RwLock<Vec<Arc<Line>>>,
}

/// What all lines stand on.
pub(super) struct Ground {
    /// Where we are reached.
    pub(super) base: String,
    /// What is answered for those who cannot be asked.
    pub(super) unasked: Permissions,
    pub(super) limits: Arc<Limits>,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    /// No link is opened any more.
    pub(super) closing: CancellationToken,
}

/// Whoever asks for something.
pub(super) struct Asker {
    pub(super) principal: Arc<Principal>,
    /// Under which name its threads and runs are kept.
    pub(super) owner: Arc<str>,
    /// The agent of those who name none.
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

    /// Serves these from now on; those that are not among them come back. One that stays goes on as
    /// it began, but for what it is answered for those who cannot be asked.
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

    /// Those that somebody may use.
    pub(super) fn of(&self, asker: &Asker) -> Vec<Arc<Line>> {
        let mut lines = self.all();
        lines.retain(|line| may_use(&asker.principal, line));
        lines
    }

    /// Whether there is any that somebody may use.
    pub(super) fn has_any_for(&self, principal: &Principal) -> bool {
        self.all().iter().any(|line| may_use(principal, line))
    }

    /// One of those that somebody may use.
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

    /// The agent of somebody who names none: the usual one, or the only one.
    pub(super) fn usual(&self, asker: &Asker) -> Option<Arc<Line>> {
        let lines = self.of(asker);
        let is_usual = |line: &&Arc<Line>| line.offer.name == asker.usual;
        let usual = lines
            .iter()
            .find(is_usual)
            .filter(|_| asker.usual.is_some());
        usual.or_else(|| only(&lines)).cloned()
    }

    /// The only agent that somebody may use; none when there are several.
    pub(super) fn sole(&self, asker: &Asker) -> Option<Arc<Line>> {
        only(&self.of(asker)).cloned()
    }

    /// The agent of that id, whoever may use it.
    pub(super) async fn known(&self, id: Uuid) -> Option<Arc<Line>> {
        for line in self.all() {
            if line.id().await.is_ok_and(|known| known == id) {
                return Some(line);
            }
        }
        None
    }

    /// What those are like that somebody may use. They are asked all at once.
    pub(super) async fn introduced(&self, asker: &Asker) -> Result<Vec<Arc<Agent>>, Fault> {
        let asked = self.of(asker).into_iter().map(|line| {
            // In a task of its own: whoever does not wait any more must not keep it from others.
            tokio::spawn(async move { line.introduced().await })
        });
        let asked: Vec<_> = asked.collect();
        let mut known = Vec::new();
        for agent in asked {
            let lost = |_| Fault::later("an agent could not be asked");
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
