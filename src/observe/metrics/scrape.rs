//! A scrape: sets the gauges and some totals, renders the exporter's text and appends the families
//! that the exporter does not hold.
//!
//! These are histograms, counters of seconds (its counters are whole numbers), and the context ratio,
//! whose series ends with the conversations that report it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::LabelSet;
use metrics_exporter_prometheus::formatting::{
    write_help_line, write_metric_line, write_type_line,
};

use super::catalogue::CATALOGUE;
use super::labels::{DIRECTIONS, LINKS, SIDES, SPANS, Transport};
use super::metric::{Metric, Type};
use super::open_conversation::OpenConversation;
use super::process;
use super::shared::Metrics;
use super::sources::{LOST, RuntimeStats};
use super::stats::Parties;
use crate::recorder::PruneReason;
use conversation::Method;
use link::LinkTotals;

impl Metrics {
    /// All metrics, in Prometheus' text format 0.0.4.
    #[must_use]
    pub fn scrape(&self, now: Instant) -> String {
        // Not while a conversation is locked: the sources take their own locks.
        let detached = self.sum_detached();
        let runtimes = self.set_runtime_gauges();
        let live = self.live.lock().clone();
        let mut open = OpenTotals::default();
        for conversation in live.values() {
            let mut conversation = conversation.lock();
            conversation.collect();
            open.add(&conversation);
        }
        self.set_drain_and_losses(now);
        self.set_recording_totals();
        for (name, value) in process::gauges() {
            if let Some(value) = value {
                self.registry.gauge(name, &[], value);
            }
        }
        self.set_open_gauges(&open);
        self.set_buffer_gauges(&open, &detached);
        self.set_link_gauges(live.len(), &detached);
        let agents: Vec<_> = self.agents.lock().values().map(Arc::clone).collect();
        for agent in &agents {
            let none = AgentTotals::default();
            let open = open.agents.get(agent.name()).unwrap_or(&none);
            let labels = [agent.name()];
            self.registry.gauge("agents", &labels, open.conversations);
            self.registry.gauge("turns", &labels, open.turns);
            self.registry.gauge("sessions_open", &labels, open.sessions);
        }

        let mut text = MetricsText(self.registry.render());
        for metric in CATALOGUE.iter().filter(|one| one.kind == Type::Histogram) {
            let series = self.registry.histograms(metric);
            let write = |text: &mut String| series.iter().for_each(|one| one.write(text));
            text.family(metric, write);
        }
        let writes = self.recorder.writes();
        let metric = Metric::named(CATALOGUE, "recording_write_seconds");
        text.family(metric, |text| writes.write(text));
        let paused = self.paused.iter();
        let paused = paused.map(|nanos| Duration::from_nanos(nanos.load(Relaxed)).as_secs_f64());
        let paused = SIDES.iter().zip(paused).map(|(side, sum)| ([*side], sum));
        text.numbers("producer_paused_seconds_total", paused);
        let busy = runtimes.iter();
        let busy = busy.map(|one| ([one.name], one.busy.as_secs_f64()));
        text.numbers("tokio_busy_seconds_total", busy);
        text.numbers("process_cpu_seconds_total", [([], process::cpu_seconds())]);
        let ratios = open.agents.iter();
        let ratios = ratios.filter_map(|(agent, open)| Some(([&**agent], open.context?)));
        text.numbers("context_used_ratio", ratios);
        text.sorted()
    }

    fn set_drain_and_losses(&self, now: Instant) {
        let registry = &self.registry;
        let since = self.draining.get();
        registry.gauge("draining", &[], u64::from(since.is_some()));
        let drained = since.map(|since| now.saturating_duration_since(*since));
        let drained = drained.unwrap_or_default().as_secs_f64();
        registry.gauge_f64("drain_duration_seconds", &[], drained);
        let spans = self.spans.get().map_or([0; 3], |spans| spans.read());
        for (outcome, count) in SPANS.iter().zip(spans) {
            registry.total("trace_spans_total", &[outcome], count);
        }
        for (place, count) in panics::Place::NAMES.iter().zip(panics::counts()) {
            registry.total("panics_total", &[place], count);
        }
        let program = self.program.get();
        let lost = program.map_or([0; 2], |program| program.lost_lines());
        for (why, count) in LOST.iter().zip(lost) {
            registry.total("log_lines_lost_total", &[why], count);
        }
        for (name, label, value) in program.map_or_else(Vec::new, |program| program.cluster()) {
            match Metric::named(CATALOGUE, name).kind {
                Type::Counter => registry.total(name, label.as_slice(), value),
                _ => registry.gauge(name, label.as_slice(), value),
            }
        }
    }

    fn set_recording_totals(&self) {
        let (registry, totals) = (&self.registry, self.recorder.totals());
        registry.total("recording_bytes_total", &[], totals.bytes);
        registry.total("recording_events_total", &[], totals.events);
        registry.total("recording_dropped_total", &[], totals.dropped);
        for why in PruneReason::ALL {
            registry.total("recordings_pruned_total", &[why.name()], why.count());
        }
        for (rule, count) in totals.redactions.by_kind() {
            registry.total("redactions_total", &[rule.name()], count);
        }
    }

    /// Sets the gauges of the program's runtimes, and returns their figures.
    fn set_runtime_gauges(&self) -> Vec<RuntimeStats> {
        let program = self.program.get();
        let runtimes = program.map_or_else(Vec::new, |program| program.runtimes());
        for one in &runtimes {
            let name = [one.name];
            self.registry.gauge("tokio_workers", &name, one.workers);
            self.registry.gauge("tokio_alive_tasks", &name, one.tasks);
            self.registry
                .gauge("tokio_global_queue_depth", &name, one.queued);
        }
        runtimes
    }

    fn set_open_gauges(&self, open: &OpenTotals) {
        for (index, gauge) in self.series.connections_open.used() {
            gauge.set(open.connections.get(&index).copied().unwrap_or(0));
        }
        for (index, gauge) in self.series.in_flight.used() {
            let (side, method) = (index / Method::ALL.len(), index % Method::ALL.len());
            gauge.set(open.in_flight[side][method]);
        }
        for (index, gauge) in self.series.silent.used() {
            let (side, method) = (index / Method::ALL.len(), index % Method::ALL.len());
            gauge.set(open.silent[side][method]);
        }
    }

    /// The links to clients of `live` conversations, and resumable links to agents.
    fn set_link_gauges(&self, live: usize, detached: &LinkTotals) {
        let links = live + detached.to_agents;
        let away = detached.away.min(links);
        let counts = match self.draining.get() {
            None => [links - away, away, 0],
            Some(_) => [0, 0, links],
        };
        let unacked = detached.unacked;
        self.registry.gauge("link_unacked_bytes", &[], unacked);
        for (state, count) in LINKS.iter().zip(counts) {
            self.registry.gauge("links", &[state], count);
        }
    }

    /// Bytes that are queued in the relay, and their limits.
    fn set_buffer_gauges(&self, open: &OpenTotals, detached: &LinkTotals) {
        let (waiting, waiting_room) = self.recorder.waiting();
        let [to_agent, to_client] = [DIRECTIONS[0], DIRECTIONS[1]];
        for (labels, bytes, limit) in [
            ([to_agent, "outbox"], open.queued[1], open.room),
            ([to_client, "outbox"], open.queued[0], open.room),
            ([to_client, "return"], detached.kept, detached.room),
            (["to_file", "recorder"], waiting, waiting_room),
        ] {
            self.registry.gauge("buffer_bytes", &labels, bytes);
            self.registry.gauge("buffer_limit_bytes", &labels, limit);
        }
    }

    /// The sum of all stores of conversations whose clients may reconnect, and of resumable links.
    fn sum_detached(&self) -> LinkTotals {
        let all = self.detached.lock();
        let sources: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        let mut sum = LinkTotals::default();
        for source in sources {
            let one = source.totals();
            sum.away += one.away;
            sum.to_agents += one.to_agents;
            sum.unacked += one.unacked;
            sum.kept += one.kept;
            sum.room += one.room;
        }
        sum
    }
}

/// The sums of the open conversations.
#[derive(Default)]
struct OpenTotals {
    /// By index of the series.
    connections: BTreeMap<usize, u32>,
    in_flight: [[u32; Method::ALL.len()]; 2],
    silent: [[u32; Method::ALL.len()]; 2],
    /// Bytes queued for the client and for the agent, and how many may be for either.
    queued: [usize; 2],
    room: usize,
    /// By name, which is unique.
    agents: BTreeMap<String, AgentTotals>,
}

/// The sums of the open conversations of one agent.
#[derive(Default)]
struct AgentTotals {
    conversations: usize,
    turns: usize,
    sessions: u64,
    /// That of the fullest conversation.
    context: Option<f64>,
}

impl OpenTotals {
    fn add(&mut self, one: &OpenConversation) {
        let Parties {
            transports, agent, ..
        } = &one.parties;
        for (side, transport) in transports.iter().enumerate() {
            let index = side * Transport::NAMES.len() + *transport as usize;
            *self.connections.entry(index).or_default() += 1;
        }
        let methods = self.in_flight.as_flattened_mut().iter_mut();
        for (sum, open) in methods.zip(one.in_flight.as_flattened()) {
            *sum += open;
        }
        for one in &one.silent {
            self.silent[one.side.other() as usize][one.method as usize] += 1;
        }
        for (sum, queued) in self.queued.iter_mut().zip(one.queued) {
            *sum += queued;
        }
        self.room += one.parties.room;
        let agent = self.agents.entry(agent.name().to_owned()).or_default();
        agent.conversations += 1;
        agent.turns += one.turns.len();
        agent.sessions += one.sessions;
        let ratios = agent.context.into_iter().chain(one.context);
        agent.context = ratios.reduce(f64::max);
    }
}

/// The text of the response.
struct MetricsText(String);

impl MetricsText {
    /// The families in the order of their names, and the series of counters and gauges as well: the
    /// exporter has no order of its own.
    fn sorted(&self) -> String {
        let families = self.0.split_terminator("\n\n").map(|family| {
            let mut lines: Vec<&str> = family.lines().collect();
            if !lines.iter().any(|line| line.ends_with(" histogram")) {
                lines.sort_unstable();
            }
            lines
        });
        let mut families: Vec<_> = families.collect();
        families.sort_unstable();
        let mut text = String::with_capacity(self.0.len());
        for line in families.iter().flatten() {
            text += line;
            text.push('\n');
        }
        text
    }

    /// Appends a family; one without samples is left out.
    fn family(&mut self, metric: &Metric, write: impl FnOnce(&mut String)) {
        let mut samples = String::new();
        write(&mut samples);
        if samples.is_empty() {
            return;
        }
        let kind = metric.kind.name();
        write_help_line(&mut self.0, metric.name, None, None, metric.meaning);
        write_type_line(&mut self.0, metric.name, None, None, kind);
        self.0 += &samples;
        self.0.push('\n');
    }

    /// Appends a family of numbers, by the values of the labels.
    fn numbers<'a, const N: usize>(
        &mut self,
        name: &str,
        series: impl IntoIterator<Item = ([&'a str; N], f64)>,
    ) {
        let metric = Metric::named(CATALOGUE, name);
        self.family(metric, |text| {
            for (labels, value) in series {
                let labels =
                    LabelSet::from_key_and_global(&metric.key(&labels), &Default::default());
                write_metric_line::<&str, _>(text, metric.name, None, &labels, None, value, None);
            }
        });
    }
}
