//! The agents that clients can have, by name.
//!
//! Not here: where they come from (see `plan`).

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
    /// What it is called; the one on the command line has no name.
    pub(super) name: Option<String>,
    pub(super) endpoint: Endpoint,
    pub(super) ground: Ground,
    /// Its own clients.
    pub(super) seats: Seats,
    /// Where it waits for clients that come back; none when it does not.
    pub(super) harbour: Option<Arc<Harbour>>,
}

/// All agents.
#[derive(Clone, Default)]
pub(super) struct Roster {
    pub(super) named: BTreeMap<String, Arc<Agent>>,
    /// That of clients who name none.
    pub(super) default: Option<Arc<Agent>>,
}

/// What the clients of one listener get.
#[derive(Clone)]
pub(super) struct Station {
    pub(super) roster: Roster,
    /// What they speak, where the command line does not say it.
    pub(super) dialect: Option<Choice>,
    /// How their links are opened.
    pub(super) setup: Setup,
    /// Where they are let in.
    pub(super) door: Arc<Door>,
}

impl Agent {
    /// What it is called where everything has a name.
    pub(super) fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(ONLY_AGENT)
    }
}

impl Roster {
    /// All of them; one that is also the default may be there twice.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.default.iter().chain(self.named.values())
    }

    /// The agent of that name, or of those who name none.
    pub(super) fn find(&self, name: Option<&str>) -> Option<&Arc<Agent>> {
        match name {
            Some(name) => self.named.get(name),
            None => self.default.as_ref(),
        }
    }

    /// How Agent Connect offers them, with what the file says of each; `unasked` is what the command
    /// line says of all.
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

    /// What of it a listener has.
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

/// The only one, which need not be named.
pub(super) fn only(named: &BTreeMap<String, Arc<Agent>>) -> Option<Arc<Agent>> {
    let mut all = named.values();
    all.next().filter(|_| all.next().is_none()).cloned()
}
