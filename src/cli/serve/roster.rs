//! The agents of `serve`, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::seats::Seats;
use crate::auth::ONLY_AGENT;
use crate::cli::agent_connect::Unasked;
use crate::cli::common::Ground;
use crate::cli::config::{Config, ListenerPart};
use crate::cli::door::Door;
use crate::conversation::Choice;
use crate::proxy::Harbour;
use crate::transport::{Endpoint, Offer, Setup};

/// One agent.
pub(super) struct Agent {
    /// Its name; the agent on the command line has none.
    pub(super) name: Option<String>,
    pub(super) endpoint: Endpoint,
    pub(super) ground: Ground,
    /// Limits its clients.
    pub(super) seats: Seats,
    /// Its detached conversations; `None` if it does not wait for clients.
    pub(super) harbour: Option<Arc<Harbour>>,
}

/// All agents.
#[derive(Clone, Default)]
pub(super) struct Roster {
    pub(super) named: BTreeMap<String, Arc<Agent>>,
    /// The agent of clients that name none.
    pub(super) default: Option<Arc<Agent>>,
}

/// The configuration of one listener.
#[derive(Clone)]
pub(super) struct Station {
    pub(super) roster: Roster,
    /// The clients' dialect, where the command line gives none.
    pub(super) dialect: Option<Choice>,
    /// How links are opened.
    pub(super) setup: Setup,
    /// Authenticates and counts clients.
    pub(super) door: Arc<Door>,
}

impl Agent {
    /// The name for metrics and messages.
    pub(super) fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(ONLY_AGENT)
    }
}

impl Roster {
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
    pub(super) fn offers(&self, file: &Config, unasked: Option<Unasked>) -> Vec<Offer> {
        let named = self.named.keys().map(|name| {
            let part = file.agents.get(name);
            let unasked = unasked.or_else(|| part?.unasked);
            Offer {
                name: Some(name.clone()),
                about: part.and_then(|part| part.description.clone()),
                unasked: unasked.map(Unasked::rule),
            }
        });
        let named: Vec<Offer> = named.collect();
        match named.is_empty() {
            true => vec![Offer::default()],
            false => named,
        }
    }

    /// The part of the pool that a listener serves.
    pub(super) fn of(&self, part: &ListenerPart) -> Self {
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
