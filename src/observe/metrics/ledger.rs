//! The figures of the whole process: the conversations that live, the sum of those that are over,
//! and what is rare enough to be shared.
//!
//! Not here: how they are spelled (see `scrape`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};

use super::agent::AgentFigures;
use super::around::{Moored, Moorings, Surroundings};
use super::cells::{Count, Histogram, Table};
use super::figures::{Figures, Glimpse, Passed};
use super::instrument::Instrument;
use super::rules::Rules;
use super::words::{
    BOUNDS, CODES, Closing, Come, Decision, FAULTS, Judged, OUTCOMES, Outcome, Proof, Recorded,
    Rejection, Reloaded, Transport, Unwanted,
};
use crate::conversation::{Method, Note, PermissionOutcome};
use crate::jsonrpc::Side;
use crate::observe::recorder::RecorderStats;
use crate::observe::traces;

/// Bounds of how long requests take, in seconds.
const REQUEST: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 60., 600., 3600.,
];

/// Bounds of how long a person thinks about a permission, in seconds.
const PERMISSION: &[f64] = &[
    0.1, 0.5, 1., 2.5, 5., 10., 30., 60., 300., 600., 1800., 3600.,
];

/// Bounds of how long conversations last, in seconds.
const CONVERSATION: &[f64] = &[1., 10., 60., 300., 900., 3600., 14_400., 43_200., 86_400.];

/// The figures of the process.
#[derive(Debug)]
pub struct Ledger {
    pub(super) began: Instant,
    pub(super) began_unix: f64,
    pub(super) version: &'static str,
    /// When the end was asked for.
    pub(super) draining: OnceLock<Instant>,
    pub(super) past: Past,
    pub(super) connections: Table<Count, 2>,
    pub(super) closed: Table<Count, 3>,
    pub(super) rejected: Table<Count, 2>,
    pub(super) unaccepted: Table<Count, 1>,
    pub(super) unwanted: Table<Count, 1>,
    pub(super) come: Table<Count, 1>,
    pub(super) attempts: Table<Count, 2>,
    pub(super) reloads: Table<Count, 1>,
    /// In seconds since 1970; 0 while there was none.
    pub(super) reloaded: Count,
    /// By method.
    pub(super) decisions: Table<Count, 2>,
    pub(super) lasted: Vec<Histogram>,
    pub(super) requests: Table<Count, 4>,
    pub(super) durations: Vec<Histogram>,
    pub(super) permissions: Vec<Histogram>,
    pub(super) faults: Table<Count, 2>,
    pub(super) bounds: Table<Count, 2>,
    pub(super) synthesised: Table<Count, 2>,
    pub(super) orphans: [Count; 2],
    pub(super) undeliverable: [Count; 2],
    pub(super) notes: Table<Count, 1>,
    pub(super) paused: [Count; 2],
    pub(super) pauses: [Count; 2],
    pub(super) recordings: Table<Count, 1>,
    pub(super) tape: Arc<RecorderStats>,
    pub(super) spans: OnceLock<Arc<traces::ExportStats>>,
    pub(super) rules: Rules,
    pub(super) surroundings: OnceLock<Arc<dyn Surroundings>>,
    moorings: Mutex<Vec<Weak<dyn Moorings>>>,
    agents: Mutex<BTreeMap<String, Arc<AgentFigures>>>,
    live: Mutex<BTreeMap<u64, Arc<Figures>>>,
    next: AtomicU64,
}

/// The sum of conversations that are over.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) passed: Passed<Count>,
    /// By side, transport, received or sent.
    pub(super) bytes: Table<Count, 3>,
}

/// Who takes part in a conversation.
#[derive(Clone, Debug)]
pub struct Parties {
    /// The client, as in the log.
    pub client: String,
    /// How the client and the agent are connected.
    pub transports: [Transport; 2],
    /// The agent.
    pub agent: Arc<AgentFigures>,
    /// When the agent began to be started or connected to.
    pub since: Instant,
    /// Bytes that may wait for either of them.
    pub room: usize,
}

impl Ledger {
    /// The figures of a process that has just begun. `version` says which build it is.
    #[must_use]
    pub fn new(version: &'static str, now: Instant) -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let histograms = |count, bounds| (0..count).map(|_| Histogram::new(bounds)).collect();
        let transports = Transport::ALL.len();
        let methods = Method::ALL.len();
        Self {
            began: now,
            began_unix: unix.map_or(0., |unix| unix.as_secs_f64()),
            version,
            draining: OnceLock::new(),
            past: Past {
                passed: Passed::new(),
                bytes: Table::new([2, transports, 2]),
            },
            connections: Table::new([2, transports]),
            closed: Table::new([2, transports, Closing::ALL.len()]),
            rejected: Table::new([transports, Rejection::ALL.len()]),
            unaccepted: Table::new([transports]),
            unwanted: Table::new([Unwanted::ALL.len()]),
            come: Table::new([Come::ALL.len()]),
            attempts: Table::new([Proof::ALL.len(), Judged::ALL.len()]),
            reloads: Table::new([Reloaded::ALL.len()]),
            reloaded: Count::default(),
            decisions: Table::new([methods, Decision::ALL.len()]),
            lasted: histograms(transports, CONVERSATION),
            requests: Table::new([2, methods, OUTCOMES.len(), CODES.len() + 1]),
            durations: histograms(2 * methods * OUTCOMES.len(), REQUEST),
            permissions: histograms(PermissionOutcome::ALL.len() + 1, PERMISSION),
            faults: Table::new([2, FAULTS.len()]),
            bounds: Table::new([2, BOUNDS.len()]),
            synthesised: Table::new([2, CODES.len() + 1]),
            orphans: Default::default(),
            undeliverable: Default::default(),
            notes: Table::new([Note::NAMES.len()]),
            paused: Default::default(),
            pauses: Default::default(),
            recordings: Table::new([Recorded::ALL.len()]),
            tape: Arc::default(),
            spans: OnceLock::new(),
            rules: Rules::default(),
            surroundings: OnceLock::new(),
            moorings: Mutex::default(),
            agents: Mutex::default(),
            live: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// The figures of the agent of that name in the configuration. Not for names that peers choose.
    #[must_use]
    pub fn agent(&self, name: &str) -> Arc<AgentFigures> {
        let mut agents = self.agents.lock();
        if let Some(agent) = agents.get(name) {
            return Arc::clone(agent);
        }
        let agent = Arc::new(AgentFigures::new(name));
        agents.insert(name.to_owned(), Arc::clone(&agent));
        agent
    }

    /// A conversation begins. The tap counts it and, when it is dropped, its end.
    #[must_use]
    pub fn begin(self: &Arc<Self>, parties: Parties) -> Instrument {
        let number = self.next.fetch_add(1, Relaxed);
        let Parties {
            client,
            transports,
            agent,
            since,
            room,
        } = parties;
        for (side, transport) in transports.into_iter().enumerate() {
            self.connections.at([side, transport as usize]).add(1);
        }
        agent.running.add(1);
        let figures = Arc::new(Figures::new(client, transports, agent, since, room));
        self.live().insert(number, Arc::clone(&figures));
        Instrument::new(Arc::clone(self), figures, number)
    }

    /// A client was turned away before it had a conversation.
    pub fn rejected(&self, transport: Transport, why: Rejection) {
        self.rejected.at([transport as usize, why as usize]).add(1);
    }

    /// A listener could not take a client.
    pub fn unaccepted(&self, transport: Transport) {
        self.unaccepted.at([transport as usize]).add(1);
    }

    /// The admin listener did not answer somebody.
    pub fn unwanted(&self, why: Unwanted) {
        self.unwanted.at([why as usize]).add(1);
    }

    /// A client has come that may come back.
    pub fn came(&self, how: Come) {
        self.come.at([how as usize]).add(1);
    }

    /// Has a place of such clients looked at with each scrape, for as long as there is one.
    pub fn watch(&self, place: Weak<dyn Moorings>) {
        let mut all = self.moorings.lock();
        all.retain(|place| place.strong_count() > 0);
        all.push(place);
    }

    /// Has the program asked with each scrape. The first one stays.
    pub fn surround(&self, program: Arc<dyn Surroundings>) {
        // There is one program in a process.
        let _ = self.surroundings.set(program);
    }

    /// A claim was judged at the door.
    pub fn judged(&self, proof: Proof, how: Judged) {
        self.attempts.at([proof as usize, how as usize]).add(1);
    }

    /// The configuration file was to be read again.
    pub fn reloaded(&self, how: Reloaded) {
        self.reloads.at([how as usize]).add(1);
        if how == Reloaded::Taken {
            let unix = SystemTime::now().duration_since(UNIX_EPOCH);
            self.reloaded.set(unix.map_or(0, |unix| unix.as_secs()));
        }
    }

    /// Shows what becomes of the spans of traces.
    pub fn count_spans(&self, spans: Arc<traces::ExportStats>) {
        // There is one exporter in a process.
        let _ = self.spans.set(spans);
    }

    /// Where recorders count what they write.
    #[must_use]
    pub fn tape(&self) -> Arc<RecorderStats> {
        Arc::clone(&self.tape)
    }

    /// A recording was begun, or is over.
    pub fn recorded(&self, how: Recorded) {
        self.recordings.at([how as usize]).add(1);
    }

    /// The end was asked for. Only the first time counts.
    pub fn drain(&self, now: Instant) {
        let _ = self.draining.set(now);
    }

    /// How long the process has been running.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// The conversations that go on, oldest first.
    #[must_use]
    pub fn glimpses(&self, now: Instant) -> Vec<Glimpse> {
        let live = self.live();
        live.iter()
            .map(|(number, figures)| figures.glimpse(*number, now))
            .collect()
    }

    /// How many conversations there have been.
    #[must_use]
    pub fn conversations(&self) -> u64 {
        self.next.load(Relaxed) - 1
    }

    /// How it stands with all clients that may come back.
    pub(super) fn moored(&self) -> Moored {
        let all = self.moorings.lock();
        let places: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        let mut sum = Moored::default();
        for place in places {
            let one = place.moored();
            sum.away += one.away;
            sum.kept += one.kept;
            sum.room += one.room;
        }
        sum
    }

    pub(super) fn agents(&self) -> Vec<Arc<AgentFigures>> {
        let agents = self.agents.lock();
        agents.values().map(Arc::clone).collect()
    }

    /// The conversations that go on. While it is held none ends, and what is over stays as it is.
    pub(super) fn live(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Figures>>> {
        self.live.lock()
    }

    /// A conversation is over: its figures become part of the past.
    pub(super) fn close(&self, number: u64, figures: &Figures, lasted: Duration, how: Closing) {
        let mut live = self.live();
        live.remove(&number);
        let (past, passed) = (&self.past.passed, &figures.passed);
        for (past, own) in past.messages.cells().iter().zip(passed.messages.cells()) {
            past.add(own.get());
        }
        for (past, own) in past.sizes.cells().iter().zip(passed.sizes.cells()) {
            past.add(own.get());
        }
        for (past, own) in past.bytes.cells().iter().zip(passed.bytes.cells()) {
            past.add(own.get());
        }
        past.pace.add(&passed.pace);
        for (side, transport) in figures.transports.into_iter().enumerate() {
            let transport = transport as usize;
            for (flow, own) in figures.bytes[side].iter().enumerate() {
                self.past.bytes.at([side, transport, flow]).add(own.get());
            }
            self.closed.at([side, transport, how as usize]).add(1);
        }
        figures.agent.gaps.absorb(&figures.gaps);
        figures.agent.running.take(1);
        self.lasted[figures.transports[0] as usize].observe(lasted);
    }

    pub(super) fn answered(
        &self,
        asker: Side,
        method: Method,
        outcome: Outcome,
        code: usize,
        waited: Option<Duration>,
    ) {
        let place = [asker as usize, method as usize, outcome as usize, code];
        self.requests.at(place).add(1);
        if let Some(waited) = waited {
            self.durations[duration_at(asker as usize, method as usize, outcome as usize)]
                .observe(waited);
        }
    }
}

/// The place of a duration: by who asked, method, outcome.
pub(super) const fn duration_at(asker: usize, method: usize, outcome: usize) -> usize {
    (asker * Method::ALL.len() + method) * OUTCOMES.len() + outcome
}
