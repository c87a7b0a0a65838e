//! The metrics of the process: handles that all conversations share, and the open conversations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::agent::AgentMetrics;
use super::buckets::nanos;
use super::catalogue::{CATALOGUE, ProcessSeries};
use super::labels::{self, AdminRefusal, Closing, RecordingResult, ReloadOutcome, Transport};
use super::open_conversation::OpenConversation;
use super::registry::Registry;
use super::sources::GaugeSource;
use super::stats::ConversationStats;
use crate::recorder::RecorderStats;
use crate::traces;
use auth::{AuthEvents, CredentialKind, RejectReason};
use conversation::Note;
use jsonrpc::Side;
use link::{Attach, LinkEvents, LinkSource};
use panics::SharedMutex;

/// The metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    pub(super) registry: Arc<Registry>,
    began: Instant,
    /// When the process was asked to end.
    pub(super) draining: OnceLock<Instant>,
    pub(super) series: Arc<ProcessSeries>,
    /// In nanoseconds, by side.
    pub(super) paused: [AtomicU64; 2],
    pub(super) recorder: Arc<RecorderStats>,
    pub(super) spans: OnceLock<Arc<traces::ExportStats>>,
    pub(super) program: OnceLock<Arc<dyn GaugeSource>>,
    pub(super) detached: SharedMutex<Vec<Weak<dyn LinkSource>>>,
    pub(super) agents: SharedMutex<BTreeMap<String, Arc<AgentMetrics>>>,
    pub(super) live: SharedMutex<BTreeMap<u64, Arc<Mutex<OpenConversation>>>>,
    pub(super) next: AtomicU64,
}

impl Metrics {
    /// The metrics of a process that has just started; `version` names the build.
    #[must_use]
    pub fn new(version: &str, now: Instant) -> Self {
        let registry = Arc::new(Registry::new(CATALOGUE));
        registry.gauge("build_info", &[version], 1_u64);
        registry.gauge_f64("process_start_time_seconds", &[], unix_time());
        registry.gauge(RELOADED, &[], 0_u64);
        Self {
            began: now,
            draining: OnceLock::new(),
            series: Arc::new(ProcessSeries::new(&registry, None)),
            paused: Default::default(),
            recorder: Arc::default(),
            spans: OnceLock::new(),
            program: OnceLock::new(),
            detached: SharedMutex::default(),
            agents: SharedMutex::default(),
            live: SharedMutex::default(),
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

    pub(super) fn ended(
        &self,
        number: u64,
        transports: [Transport; 2],
        lasted: Duration,
        how: Closing,
    ) {
        for (side, transport) in transports.into_iter().enumerate() {
            let place = [side, transport as usize, how as usize];
            self.series.closed.count(place);
        }
        let transport = transports[0] as usize;
        self.series.lasted.at([transport]).record(lasted);
        self.live.lock().remove(&number);
    }

    /// A client was rejected before it had a conversation.
    pub fn rejected(&self, transport: Transport, why: RejectReason) {
        self.series
            .rejected
            .count([transport as usize, why as usize]);
    }

    /// A listener could not accept a client.
    pub fn accept_failed(&self, transport: Transport) {
        self.series.accept_errors.count([transport as usize]);
    }

    /// The admin listener refused a request.
    pub fn admin_refused(&self, why: AdminRefusal) {
        self.series.admin_refused.count([why as usize]);
    }

    /// A client of `--on-disconnect detach` began a conversation, or returned to one.
    pub fn attached(&self, is_resumed: bool) {
        self.series.attached.count([1, usize::from(is_resumed)]);
    }

    /// A message that was kept for a client is too long for the one that has returned.
    pub fn kept_too_long(&self, note: &Note) {
        self.series.notes.count([note.index()]);
    }

    /// The configuration file was to be read again.
    pub fn config_reload(&self, how: ReloadOutcome) {
        // Before it is counted: a scrape that shows the count shows the time of it.
        if how == ReloadOutcome::Taken {
            self.registry.gauge_f64(RELOADED, &[], unix_time().floor());
        }
        self.series.reloads.count([how as usize]);
    }

    /// A recording was begun, or is over.
    pub fn recording(&self, how: RecordingResult) {
        self.series.recordings.count([how as usize]);
    }

    pub(super) fn paused(&self, side: Side, took: Duration) {
        self.paused[side as usize].fetch_add(nanos(took), Relaxed);
        self.series.pauses.count([side as usize]);
    }

    /// Reads this store at each scrape, for as long as it exists.
    pub fn add_detached(&self, source: Weak<dyn LinkSource>) {
        let mut all = self.detached.lock();
        all.retain(|source| source.strong_count() > 0);
        all.push(source);
    }

    /// Reads the program's own values at each scrape. Only the first call counts.
    pub fn set_program(&self, program: Arc<dyn GaugeSource>) {
        let _ = self.program.set(program);
    }

    /// Reads what became of spans at each scrape. Only the first call counts.
    pub fn set_spans(&self, spans: Arc<traces::ExportStats>) {
        let _ = self.spans.set(spans);
    }

    /// Where recorders count what they write.
    #[must_use]
    pub fn recorder(&self) -> Arc<RecorderStats> {
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
        let live = self.live.lock().clone();
        let stats = live.iter();
        let stats = stats.map(|(number, one)| one.lock().stats(*number, now));
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

impl AuthEvents for Metrics {
    fn authenticated(&self, credential: CredentialKind, admitted: bool) {
        let outcome = usize::from(admitted);
        self.series.attempts.count([credential as usize, outcome]);
    }

    fn rejected(&self, scheme: &str, why: RejectReason) {
        Self::rejected(self, Transport::of_scheme(scheme), why);
    }
}

impl LinkEvents for Metrics {
    fn on_attach(&self, how: Attach) {
        if let Attach::Resumed(away) = how {
            self.series.downtime.at([]).record(away);
        }
        self.series.attached.count([0, labels::attached(how)]);
    }
}
