//! What hosts say of themselves, and where a new conversation is placed. No clock: times are
//! arguments.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::request::name_of;

/// The version of records and requests.
pub(super) const VERSION: u32 = 1;

/// How long a host that renews its entry every 5 s says nothing until it counts as ended: its clients
/// get their errors before a lease is over.
const SILENCE: Duration = Duration::from_secs(25);

/// How long the name of an agent is known after its last host: a client that comes back meanwhile is
/// told to try again, and not that there is no such agent.
const NAMES: Duration = Duration::from_secs(600);

/// Longest record, in bytes.
const MAX_RECORD: usize = 64 << 10;
/// Most agents of a host, and most that a gateway offers.
const MAX_AGENTS: usize = 1000;
/// Longest name of an agent, in bytes.
const MAX_NAME: usize = 64;
/// Most processes with the name of a host: one that was killed counts until its lease is over.
const MAX_PROCESSES: usize = 16;

/// What a host says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The version of the record.
    pub v: u32,
    /// The labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Its agents, by name.
    pub agents: BTreeSet<String>,
    /// How many conversations it takes.
    pub capacity: usize,
    /// How many it has.
    pub open: usize,
    /// Whether it takes no new ones.
    #[serde(default)]
    pub draining: bool,
    /// Where gateways reach it without NATS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The version of its program.
    #[serde(default)]
    pub version: String,
}

/// The hosts that a gateway knows, by their ids.
#[derive(Debug)]
pub struct Directory {
    hosts: HashMap<String, Known>,
    /// The agents of the hosts of each name, and when a host was last valid that has them.
    agents: BTreeMap<String, BTreeMap<String, Instant>>,
    /// The names of hosts of which something was refused, what, and when that was said.
    refused: HashMap<(String, &'static str), Instant>,
    lease: Duration,
    /// The labels that a host needs to be used.
    select: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Known {
    record: HostRecord,
    /// When it came, and the revision of its entry.
    at: Instant,
    revision: u64,
    /// The conversations that were placed since.
    placed: usize,
}

/// Where a conversation can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The id of the host.
    pub host: String,
    /// Its address, if it has one.
    pub address: Option<String>,
}

impl HostRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// It is not understood, or too large.
    pub(super) fn read(record: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        if record.len() > MAX_RECORD {
            return Err(format!("its record has more than {MAX_RECORD} bytes"));
        }
        let Version { v } = serde_json::from_slice(record).map_err(|error| error.to_string())?;
        if v != VERSION {
            return Err(format!(
                "its record is of version {v}, and {VERSION} is known here"
            ));
        }
        let read: Self = serde_json::from_slice(record).map_err(|error| error.to_string())?;
        if read.agents.len() > MAX_AGENTS || read.agents.iter().any(|name| name.len() > MAX_NAME) {
            return Err(format!(
                "it has over {MAX_AGENTS} agents, or {MAX_NAME} bytes in a name"
            ));
        }
        Ok(read)
    }
}

impl Directory {
    /// No hosts yet; an entry is valid for `lease`.
    #[must_use]
    pub fn new(lease: Duration, select: BTreeMap<String, String>) -> Self {
        Self {
            hosts: HashMap::new(),
            agents: BTreeMap::new(),
            refused: HashMap::new(),
            lease,
            select,
        }
    }

    /// Takes what a host says of itself, in an entry of this revision, at the time `now`.
    ///
    /// # Errors
    /// Why the host is not used.
    pub fn heard(
        &mut self,
        host: &str,
        (record, revision): (&[u8], u64),
        now: Instant,
    ) -> Result<(), String> {
        let record = HostRecord::read(record).inspect_err(|_| self.gone(host))?;
        if !self.hosts.contains_key(host) {
            self.expire(now);
            let is_same = |other: &&String| name_of(other) == name_of(host);
            if self.hosts.keys().filter(is_same).count() >= MAX_PROCESSES {
                return Err(format!("{MAX_PROCESSES} other ones have its name"));
            }
        }
        let known = Known {
            record,
            at: now,
            revision,
            placed: 0,
        };
        self.hosts.insert(host.to_owned(), known);
        Ok(())
    }

    /// A host has ended.
    pub fn gone(&mut self, host: &str) {
        self.hosts.remove(host);
    }

    /// A host, if its entry is valid.
    #[must_use]
    pub fn find(&self, host: &str, now: Instant) -> Option<Placement> {
        let known = self
            .hosts
            .get(host)
            .filter(|known| self.is_valid(known, now));
        known.map(|known| known.placement(host))
    }

    /// Whether a host has said nothing for [`SILENCE`] after its entry of this revision.
    #[must_use]
    pub fn is_silent(&self, host: &str, revision: u64, now: Instant) -> bool {
        let known = self.hosts.get(host);
        known.is_some_and(|known| known.revision == revision && now >= known.at + SILENCE)
    }

    /// The hosts that can take a new conversation with that agent, the least loaded first.
    #[must_use]
    pub fn candidates(&self, agent: &str, now: Instant) -> Vec<Placement> {
        let mut found: Vec<(&String, &Known)> = self
            .hosts
            .iter()
            .filter(|(_, known)| self.is_valid(known, now) && !known.record.draining)
            .filter(|(_, known)| known.record.agents.contains(agent))
            .filter(|(_, known)| is_selected(&self.select, known))
            .collect();
        found.sort_by(|(a, left), (b, right)| {
            left.load().total_cmp(&right.load()).then_with(|| a.cmp(b))
        });
        let found = found.into_iter();
        found.map(|(host, known)| known.placement(host)).collect()
    }

    /// A conversation was placed on a host.
    pub fn placed(&mut self, host: &str) {
        if let Some(known) = self.hosts.get_mut(host) {
            known.placed += 1;
        }
    }

    /// The agents of all hosts that are used, and the names of the hosts that have more than there is
    /// room for: each has its turn. Those that had them lately come last. What is not valid any more
    /// is forgotten.
    pub fn agents(&mut self, now: Instant) -> (BTreeSet<String>, BTreeSet<String>) {
        self.expire(now);
        for (host, known) in &self.hosts {
            if is_selected(&self.select, known) {
                let names = self.agents.entry(name_of(host).to_owned()).or_default();
                names.extend(known.record.agents.iter().map(|name| (name.clone(), now)));
            }
        }
        self.agents.retain(|_, names| {
            names.retain(|_, last| now < *last + NAMES);
            if names.len() > MAX_AGENTS {
                names.retain(|_, last| *last == now);
            }
            !names.is_empty()
        });
        let (mut all, mut left_out) = (BTreeSet::new(), BTreeSet::new());
        for has_them in [true, false] {
            let is_one = move |(_, last): &(_, &Instant)| (**last == now) == has_them;
            let turns = self.agents.iter();
            let turns = turns.map(|(host, names)| (host, names.iter().filter(is_one)));
            let mut turns: Vec<_> = turns.collect();
            while !turns.is_empty() {
                turns.retain_mut(|(host, names)| match names.next() {
                    Some((name, _)) if all.contains(name) => true,
                    Some((name, _)) if all.len() < MAX_AGENTS => all.insert(name.clone()),
                    Some(_) if has_them => !left_out.insert((*host).clone()),
                    _ => false,
                });
            }
        }
        (all, left_out)
    }

    /// Whether it is to be said that something of a host was refused: once for a while, for all hosts
    /// of its name.
    pub fn is_news(&mut self, host: &str, what: &'static str, now: Instant) -> bool {
        self.refused.retain(|_, said| now < *said + NAMES);
        let key = (name_of(host).to_owned(), what);
        let before = self.refused.len();
        self.refused.entry(key).or_insert(now);
        self.refused.len() > before
    }

    fn expire(&mut self, now: Instant) {
        let lease = self.lease;
        self.hosts.retain(|_, known| now < known.at + lease);
    }

    /// What each valid entry says, by the ids of the hosts.
    #[must_use]
    pub fn all(&self, now: Instant) -> BTreeMap<String, HostRecord> {
        let valid = self
            .hosts
            .iter()
            .filter(|(_, known)| self.is_valid(known, now));
        valid
            .map(|(host, known)| (host.clone(), known.record.clone()))
            .collect()
    }

    fn is_valid(&self, known: &Known, now: Instant) -> bool {
        now < known.at + self.lease
    }
}

fn is_selected(select: &BTreeMap<String, String>, known: &Known) -> bool {
    let mut wanted = select.iter();
    wanted.all(|(name, value)| known.record.labels.get(name) == Some(value))
}

impl Known {
    fn load(&self) -> f64 {
        (self.record.open.saturating_add(self.placed)) as f64 / self.record.capacity.max(1) as f64
    }

    fn placement(&self, host: &str) -> Placement {
        Placement {
            host: host.to_owned(),
            address: self.record.address.clone(),
        }
    }
}
