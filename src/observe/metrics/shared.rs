//! The metrics of the process: handles that all conversations share, and the open conversations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use metrics::{Counter, Gauge};
use parking_lot::Mutex;

use super::agent::AgentMetrics;
use super::buckets::{Buckets, nanos};
use super::conversation::ConversationMetrics;
use super::labels::{
    CODES, Closing, Come, DIRECTIONS, Decision, FAULTS, FLOWS, Judged, KINDS, LIMITS, OUTCOMES,
    Proof, Recorded, Rejection, Reloaded, SIDES, TRANSLATED, Transport, Unwanted,
};
use super::registry::{Family, Registry};
use super::sources::{DetachedSource, GaugeSource};
use super::stats::{ConversationStats, Live};
use crate::conversation::{Method, Note, Verdict};
use crate::jsonrpc::Side;
use crate::observe::recorder::Tally;
use crate::observe::traces;

/// The metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    pub(super) registry: Arc<Registry>,
    began: Instant,
    /// When the process was asked to end.
    pub(super) draining: OnceLock<Instant>,
    connections: Family<Counter, 2>,
    pub(super) connections_open: Family<Gauge, 2>,
    closed: Family<Counter, 3>,
    pub(super) lasted: Family<Buckets, 1>,
    rejected: Family<Counter, 2>,
    accept_errors: Family<Counter, 1>,
    admin_refused: Family<Counter, 1>,
    attached: Family<Counter, 1>,
    attempts: Family<Counter, 2>,
    reloads: Family<Counter, 1>,
    policy: Family<Counter, 2>,
    pub(super) messages: Family<Counter, 3>,
    pub(super) bytes: Family<Counter, 3>,
    pub(super) requests: Family<Counter, 4>,
    pub(super) durations: Family<Buckets, 3>,
    pub(super) in_flight: Family<Gauge, 2>,
    pub(super) permissions: Family<Buckets, 1>,
    pub(super) faults: Family<Counter, 2>,
    pub(super) limits: Family<Counter, 2>,
    pub(super) synthesised: Family<Counter, 2>,
    pub(super) orphans: Family<Counter, 1>,
    pub(super) undeliverable: Family<Counter, 1>,
    pub(super) notes: Family<Counter, 1>,
    pauses: Family<Counter, 1>,
    /// In nanoseconds, by side.
    pub(super) paused: [AtomicU64; 2],
    recordings: Family<Counter, 1>,
    pub(super) sizes: Family<Buckets, 2>,
    pub(super) processing: Family<Buckets, 2>,
    pub(super) recorder: Arc<Tally>,
    pub(super) spans: OnceLock<Arc<traces::Tally>>,
    pub(super) program: OnceLock<Arc<dyn GaugeSource>>,
    pub(super) detached: Mutex<Vec<Weak<dyn DetachedSource>>>,
    pub(super) agents: Mutex<BTreeMap<String, Arc<AgentMetrics>>>,
    pub(super) live: Mutex<BTreeMap<u64, Arc<Live>>>,
    next: AtomicU64,
}

/// The parties of a conversation.
#[derive(Clone, Debug)]
pub struct Parties {
    /// The client, as in the log.
    pub client: String,
    /// The transports of the client and of the agent.
    pub transports: [Transport; 2],
    /// The agent.
    pub agent: Arc<AgentMetrics>,
    /// When the relay began to start the agent or to connect to it.
    pub since: Instant,
    /// Bytes that may be queued for either side.
    pub room: usize,
}

impl Metrics {
    /// The metrics of a process that has just started; `version` names the build.
    #[must_use]
    pub fn new(version: &str, now: Instant) -> Self {
        let registry = Arc::new(Registry::new());
        let counter = |name, values| Family::<Counter, 1>::new(&registry, name, [values]);
        let counters = |name, values| Family::<Counter, 2>::new(&registry, name, values);
        let counters3 = |name, values| Family::<Counter, 3>::new(&registry, name, values);
        let gauges = |name, values| Family::<Gauge, 2>::new(&registry, name, values);
        let histogram = |name, values| Family::<Buckets, 1>::new(&registry, name, [values]);
        let histograms = |name, values| Family::<Buckets, 2>::new(&registry, name, values);
        let (transports, methods) = (Transport::NAMES, Method::NAMES);
        registry.gauge("build_info", &[version], 1_u64);
        registry.gauge_f64("process_start_time_seconds", &[], unix_time());
        registry.gauge(RELOADED, &[], 0_u64);
        Self {
            began: now,
            draining: OnceLock::new(),
            connections: counters("connections_total", [SIDES, transports]),
            connections_open: gauges("connections_open", [SIDES, transports]),
            closed: counters3(
                "connections_closed_total",
                [SIDES, transports, Closing::NAMES],
            ),
            lasted: histogram("connection_duration_seconds", transports),
            rejected: counters("connections_rejected_total", [transports, Rejection::NAMES]),
            accept_errors: counter("accept_errors_total", transports),
            admin_refused: counter("admin_refused_total", Unwanted::NAMES),
            attached: counter("link_attach_total", Come::NAMES),
            attempts: counters("auth_attempts_total", [Proof::NAMES, Judged::NAMES]),
            reloads: counter("config_reload_total", Reloaded::NAMES),
            policy: counters("policy_decisions_total", [methods, Decision::NAMES]),
            messages: counters3("messages_total", [DIRECTIONS, KINDS, methods]),
            bytes: counters3("bytes_total", [SIDES, transports, FLOWS]),
            requests: Family::new(
                &registry,
                "requests_total",
                [DIRECTIONS, methods, OUTCOMES, CODES],
            ),
            durations: Family::new(
                &registry,
                "request_duration_seconds",
                [DIRECTIONS, methods, OUTCOMES],
            ),
            in_flight: gauges("requests_in_flight", [DIRECTIONS, methods]),
            permissions: histogram("permission_wait_seconds", Verdict::NAMES),
            faults: counters("parse_errors_total", [SIDES, FAULTS]),
            limits: counters("limit_hits_total", [SIDES, LIMITS]),
            synthesised: counters("synthesised_errors_total", [SIDES, CODES]),
            orphans: counter("orphan_responses_total", DIRECTIONS),
            undeliverable: counter("undeliverable_messages_total", DIRECTIONS),
            notes: counter("notes_total", &Note::NAMES),
            pauses: counter("pauses_total", SIDES),
            paused: Default::default(),
            recordings: counter("recordings_total", Recorded::NAMES),
            sizes: histograms("message_bytes", [DIRECTIONS, KINDS]),
            processing: histograms("processing_duration_seconds", [DIRECTIONS, TRANSLATED]),
            recorder: Arc::default(),
            spans: OnceLock::new(),
            program: OnceLock::new(),
            detached: Mutex::default(),
            agents: Mutex::default(),
            live: Mutex::default(),
            next: AtomicU64::new(1),
            registry,
        }
    }

    /// The metrics of the agent of that name in the configuration. Not for names that peers choose.
    #[must_use]
    pub fn agent(&self, name: &str) -> Arc<AgentMetrics> {
        let mut agents = self.agents.lock();
        if let Some(agent) = agents.get(name) {
            return Arc::clone(agent);
        }
        let agent = Arc::new(AgentMetrics::new(&self.registry, name));
        agents.insert(name.to_owned(), Arc::clone(&agent));
        agent
    }

    /// A conversation begins. The observer counts it until it is dropped.
    #[must_use]
    pub fn begin(self: &Arc<Self>, parties: Parties) -> ConversationMetrics {
        let number = self.next.fetch_add(1, Relaxed);
        for (side, transport) in parties.transports.into_iter().enumerate() {
            let place = [side, transport as usize];
            self.connections.at(place).increment(1);
            // The series stays when the connection does not.
            let _ = self.connections_open.at(place);
        }
        let live = Arc::new(Live::new(parties));
        self.live.lock().insert(number, Arc::clone(&live));
        ConversationMetrics::new(Arc::clone(self), live, number)
    }

    pub(super) fn ended(&self, number: u64, parties: &Parties, lasted: Duration, how: Closing) {
        for (side, transport) in parties.transports.into_iter().enumerate() {
            let place = [side, transport as usize, how as usize];
            self.closed.at(place).increment(1);
        }
        let transport = parties.transports[0] as usize;
        self.lasted.at([transport]).record(lasted);
        self.live.lock().remove(&number);
    }

    /// A client was rejected before it had a conversation.
    pub fn rejected(&self, transport: Transport, why: Rejection) {
        let place = [transport as usize, why as usize];
        self.rejected.at(place).increment(1);
    }

    /// A listener could not accept a client.
    pub fn accept_failed(&self, transport: Transport) {
        self.accept_errors.at([transport as usize]).increment(1);
    }

    /// The admin listener refused a request.
    pub fn admin_refused(&self, why: Unwanted) {
        self.admin_refused.at([why as usize]).increment(1);
    }

    /// A client was attached that may reconnect.
    pub fn attached(&self, how: Come) {
        self.attached.at([how as usize]).increment(1);
    }

    /// A client was authenticated or refused.
    pub fn auth_attempt(&self, proof: Proof, how: Judged) {
        self.attempts
            .at([proof as usize, how as usize])
            .increment(1);
    }

    /// The configuration file was to be read again.
    pub fn config_reload(&self, how: Reloaded) {
        self.reloads.at([how as usize]).increment(1);
        if how == Reloaded::Taken {
            self.registry.gauge_f64(RELOADED, &[], unix_time().floor());
        }
    }

    /// A recording was begun, or is over.
    pub fn recording(&self, how: Recorded) {
        self.recordings.at([how as usize]).increment(1);
    }

    pub(super) fn policy(&self, method: &str, what: Decision) {
        let method = Method::called(method.as_bytes());
        let place = [method as usize, what as usize];
        self.policy.at(place).increment(1);
    }

    pub(super) fn paused(&self, side: Side, took: Duration) {
        self.paused[side as usize].fetch_add(nanos(took), Relaxed);
        self.pauses.at([side as usize]).increment(1);
    }

    /// Reads this store at each scrape, for as long as it exists.
    pub fn add_detached(&self, source: Weak<dyn DetachedSource>) {
        let mut all = self.detached.lock();
        all.retain(|source| source.strong_count() > 0);
        all.push(source);
    }

    /// Reads the program's own values at each scrape. Only the first call counts.
    pub fn set_program(&self, program: Arc<dyn GaugeSource>) {
        let _ = self.program.set(program);
    }

    /// Reads what became of spans at each scrape. Only the first call counts.
    pub fn set_spans(&self, spans: Arc<traces::Tally>) {
        let _ = self.spans.set(spans);
    }

    /// Where recorders count what they write.
    #[must_use]
    pub fn recorder(&self) -> Arc<Tally> {
        Arc::clone(&self.recorder)
    }

    /// The process was asked to end. Only the first call counts.
    pub fn drain(&self, now: Instant) {
        let _ = self.draining.set(now);
    }

    /// How long the process has been running.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// The open conversations, oldest first.
    #[must_use]
    pub fn open(&self, now: Instant) -> Vec<ConversationStats> {
        let live = self.live.lock();
        let stats = live.iter().map(|(number, one)| one.stats(*number, now));
        stats.collect()
    }

    /// How many conversations there have been.
    #[must_use]
    pub fn conversations(&self) -> u64 {
        self.next.load(Relaxed) - 1
    }
}

const RELOADED: &str = "config_last_reload_success_timestamp_seconds";

/// Seconds since 1970.
fn unix_time() -> f64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH);
    unix.map_or(0., |unix| unix.as_secs_f64())
}
