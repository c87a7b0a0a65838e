//! What one open conversation has counted, and what a scrape has not collected yet.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::Counter;
use smallvec::SmallVec;

use super::agent::AgentMetrics;
use super::buckets::{nanos, size_bucket};
use super::catalogue::ProcessSeries;
use super::labels::{self, Outcome, PolicyEffect, SIDES, SessionStart};
use super::pending::Pending;
use super::registry::Registry;
use super::stats::{ConversationStats, Parties};
use super::tokens::TokenUsage;
use crate::counts::RuleCounts;
use conversation::{
    Content, MessageSummary, Method, Note, PermissionOutcome, SessionHash, SilentRequest,
    StopReason,
};
use jsonrpc::{Kind, Side};

/// An open conversation: its state, and what was counted and not collected yet.
#[derive(Debug)]
pub(super) struct OpenConversation {
    series: Arc<ProcessSeries>,
    registry: Arc<Registry>,
    pub(super) parties: Parties,
    /// Messages received from each side, and their bytes.
    pub(super) messages: [u64; 2],
    pub(super) bytes: [u64; 2],
    /// Open requests, by asker and method.
    pub(super) in_flight: [[u32; Method::ALL.len()]; 2],
    pub(super) sessions: u64,
    pub(super) notes: u64,
    /// How full the agent's context is, once it has reported that.
    pub(super) context: Option<f64>,
    /// Bytes queued for each side.
    pub(super) queued: [usize; 2],
    /// Since when each side's connection is lost, and the bytes that wait for it.
    pub(super) away: [Option<(Instant, usize)>; 2],
    /// Requests whose answers have not come for long.
    pub(super) silent: Vec<SilentRequest>,
    pub(super) turns: SmallVec<[Turn; 2]>,
    counts: Counts,
    rules: RuleCounts,
    tokens: TokenUsage,
    /// Rules were applied since processing time was last counted.
    translated: bool,
    /// The agent has answered `initialize`.
    ready: bool,
    /// The agent was sent SIGKILL.
    killed: bool,
    /// When a message was last received.
    pub(super) last: Instant,
}

/// What is not collected yet, by family.
#[derive(Debug, Default)]
struct Counts {
    messages: Pending,
    requests: Pending,
    notes: Pending,
    tool_calls: Pending,
    tool_results: Pending,
    bytes: Pending,
    sizes: Pending,
    processing: Pending,
    gaps: Pending,
}

/// An open turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    session: SessionHash,
    /// When it was requested, or its last update was received.
    since: Instant,
    /// An update was received.
    begun: bool,
}

impl OpenConversation {
    /// Counts into these series.
    pub(super) fn new(
        series: Arc<ProcessSeries>,
        registry: Arc<Registry>,
        parties: Parties,
    ) -> Self {
        Self {
            series,
            registry,
            last: parties.since,
            parties,
            messages: [0; 2],
            bytes: [0; 2],
            in_flight: [[0; Method::ALL.len()]; 2],
            sessions: 0,
            notes: 0,
            context: None,
            queued: [0; 2],
            away: [None; 2],
            silent: Vec::new(),
            turns: SmallVec::new(),
            counts: Counts::default(),
            rules: RuleCounts::default(),
            tokens: TokenUsage::default(),
            translated: false,
            ready: false,
            killed: false,
        }
    }

    /// Adds what was counted to the series.
    pub(super) fn collect(&mut self) {
        let (counts, series) = (&mut self.counts, &self.series);
        let agent = &self.parties.agent.series;
        counts.messages.flush(&series.messages);
        counts.requests.flush(&series.requests);
        counts.notes.flush(&series.notes);
        counts.bytes.flush(&series.bytes);
        counts.sizes.flush(&series.sizes);
        counts.processing.flush(&series.processing);
        counts.tool_calls.flush(&agent.tool_calls);
        counts.tool_results.flush(&agent.tool_results);
        counts.gaps.flush(&agent.gaps);
        for one in self.rules.0.iter_mut().filter(|one| one.count > 0) {
            let side = SIDES[one.side as usize];
            // A translation names its rule, which stands behind the table.
            let rule = one.rule.strip_prefix(&*one.dialect);
            let (name, what) = match rule.and_then(|rule| rule.strip_prefix('/')) {
                Some(rule) if one.what == "translated" => ("translations_total", rule),
                _ => ("dialect_events_total", one.what),
            };
            let labels = [&*one.dialect, what, side];
            let counter: Counter = self.registry.handle(name, &labels);
            counter.increment(mem::take(&mut one.count));
        }
    }

    /// What is shown of it.
    pub(super) fn stats(&self, number: u64, now: Instant) -> ConversationStats {
        let open = |methods: &[u32]| methods.iter().copied().map(u64::from).sum();
        ConversationStats {
            number,
            client: self.parties.client.clone(),
            transport: self.parties.transports[0].name(),
            agent: self.parties.agent.name().to_owned(),
            age: now.saturating_duration_since(self.parties.since),
            messages: self.messages,
            bytes: self.bytes,
            in_flight: [open(&self.in_flight[0]), open(&self.in_flight[1])],
            turns: self.turns.len() as u64,
            sessions: self.sessions,
            notes: self.notes,
            away: self.away.map(|away| {
                away.map(|(since, bytes)| (now.saturating_duration_since(since), bytes))
            }),
            silent: self
                .silent
                .iter()
                .map(|one| {
                    let lasts = now.saturating_duration_since(one.since);
                    (one.side, one.method, lasts)
                })
                .collect(),
        }
    }

    pub(super) fn set_silent(&mut self, requests: &[SilentRequest]) {
        if self.silent != requests {
            for one in requests {
                // The series stays when the request does not.
                let place = [one.side.other() as usize, one.method as usize];
                let _ = self.series.silent.at(place);
            }
            self.silent = requests.to_vec();
        }
    }

    /// Counts bytes received from a side or sent to it.
    pub(super) fn bytes(&mut self, side: Side, flow: usize, bytes: u64) {
        let transport = self.parties.transports[side as usize] as usize;
        let place = [side as usize, transport, flow];
        let series = &self.series.bytes;
        self.counts.bytes.count(series, place, bytes);
    }

    pub(super) fn processed(&mut self, from: Side, messages: u64, took: Duration) {
        let translated = mem::take(&mut self.translated);
        let place = [from as usize, usize::from(translated)];
        let series = &self.series.processing;
        let mean = took / u32::try_from(messages).unwrap_or(u32::MAX).max(1);
        let samples = (series.at(place).bucket(mean), messages, nanos(took));
        self.counts.processing.sample(series, place, samples);
    }

    pub(super) fn passed(&mut self, summary: &MessageSummary) {
        let (from, kind) = (summary.from as usize, labels::kind(summary.kind));
        let method = summary.topic.method;
        let place = [from, kind, method as usize];
        let series = &self.series;
        self.counts.messages.count(&series.messages, place, 1);
        let samples = (size_bucket(summary.bytes), 1, summary.bytes as u64);
        self.counts
            .sizes
            .sample(&series.sizes, [from, kind], samples);
        self.last = summary.at;
        match summary.kind {
            Kind::Notification => {
                if method == Method::SessionUpdate && summary.from == Side::Agent {
                    self.updated(summary);
                }
            }
            Kind::Request => {
                self.in_flight[from][method as usize] += 1;
                // The series is there from the first request, also when no scrape meets it open.
                let _ = series.in_flight.at([from, method as usize]);
                if method == Method::SessionPrompt && summary.from == Side::Client {
                    self.turns.push(Turn {
                        session: summary.topic.session,
                        since: summary.at,
                        begun: false,
                    });
                }
            }
            Kind::Result | Kind::Error => self.answered(summary),
        }
        if summary.from == Side::Agent {
            self.reported(summary.content);
        }
    }

    /// An update was received, which may belong to a turn.
    fn updated(&mut self, summary: &MessageSummary) {
        let agent = &self.parties.agent.series;
        for turn in &mut self.turns {
            if turn.session != summary.topic.session {
                continue;
            }
            let waited = summary.at.saturating_duration_since(turn.since);
            if turn.begun {
                let samples = (agent.gaps.at([]).bucket(waited), 1, nanos(waited));
                self.counts.gaps.sample(&agent.gaps, [], samples);
            } else {
                agent.first_update.at([]).record(waited);
            }
            turn.begun = true;
            turn.since = summary.at;
        }
    }

    fn answered(&mut self, summary: &MessageSummary) {
        let asker = summary.from.other();
        let method = summary.topic.method;
        let (outcome, code) = match summary.content {
            Content::Failed(-32800) => (Outcome::Cancelled, -32800),
            Content::Failed(code) => (Outcome::Error, code),
            Content::TurnEnded(StopReason::Cancelled, _)
            | Content::Decided(PermissionOutcome::Cancelled) => (Outcome::Cancelled, 0),
            _ => (Outcome::Ok, 0),
        };
        self.settle(asker, method, summary.topic.session, outcome, code);
        let waited = summary.waited.unwrap_or_default();
        if summary.waited.is_some() {
            let place = [asker as usize, method as usize, outcome as usize];
            self.series.durations.at(place).record(waited);
        }
        let agent = &self.parties.agent;
        let done = summary.kind == Kind::Result;
        match method {
            Method::SessionPrompt => {
                let (reason, tokens) = match summary.content {
                    Content::TurnEnded(reason, tokens) => (reason, tokens),
                    _ => (StopReason::Other, None),
                };
                if let Some(tokens) = tokens {
                    agent.tokens_used(&self.tokens.report(summary.topic.session, tokens));
                }
                agent.series.turns.at([reason as usize]).record(waited);
            }
            Method::SessionRequestPermission => {
                let verdict = match summary.content {
                    Content::Decided(verdict) => verdict,
                    _ => PermissionOutcome::Other,
                };
                self.series
                    .permissions
                    .at([verdict as usize])
                    .record(waited);
            }
            Method::Initialize if done && asker == Side::Client && !self.ready => {
                self.ready = true;
                let took = summary.at.saturating_duration_since(self.parties.since);
                agent.series.start.at([]).record(took);
            }
            Method::SessionNew if done => self.session_opened(SessionStart::New),
            Method::SessionLoad if done => self.session_opened(SessionStart::Load),
            Method::SessionResume if done => self.session_opened(SessionStart::Resume),
            Method::SessionClose if done => {
                self.sessions = self.sessions.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn session_opened(&mut self, how: SessionStart) {
        self.sessions += 1;
        self.parties.agent.session_opened(how);
    }

    /// A request was answered, by its peer or by the relay.
    fn settle(
        &mut self,
        asker: Side,
        method: Method,
        session: SessionHash,
        outcome: Outcome,
        code: i64,
    ) {
        let (from, at) = (asker as usize, method as usize);
        let place = [from, at, outcome as usize, labels::code(code)];
        let series = &self.series.requests;
        self.counts.requests.count(series, place, 1);
        let open = &mut self.in_flight[from][at];
        *open = open.saturating_sub(1);
        if method != Method::SessionPrompt || asker != Side::Client {
            return;
        }
        // An answer of the relay does not name the session.
        let at = self.turns.iter().position(|turn| turn.session == session);
        if let Some(at) = at.or_else(|| self.turns.len().checked_sub(1)) {
            self.turns.swap_remove(at);
        }
    }

    /// What the agent reports in a message.
    fn reported(&mut self, content: Content) {
        let status = match content {
            Content::ToolCalled(kind, status) => {
                let calls = &self.parties.agent.series.tool_calls;
                self.counts.tool_calls.count(calls, [kind as usize], 1);
                status
            }
            Content::ToolUpdated(status) => Some(status),
            #[expect(clippy::cast_precision_loss, reason = "it is a ratio")]
            Content::ContextUsed(used, size) if size > 0 => {
                self.context = Some(used as f64 / size as f64);
                None
            }
            _ => None,
        };
        if let Some(result) = status.and_then(AgentMetrics::result) {
            let results = &self.parties.agent.series.tool_results;
            self.counts.tool_results.count(results, [result], 1);
        }
    }

    pub(super) fn note(&mut self, note: &Note) {
        if let Note::Answered {
            to, method, code, ..
        } = note
        {
            let code = i64::from(*code);
            let place = [*to as usize, labels::code(code)];
            self.series.synthesised.count(place);
            let method = Method::named(method.as_bytes());
            let outcome = Outcome::ProxyError;
            self.settle(*to, method, SessionHash::default(), outcome, code);
        }
        if let Note::Cancelled { to, .. } = note {
            let method = match to {
                Side::Client => Method::SessionPrompt,
                Side::Agent => Method::SessionRequestPermission,
            };
            self.settle(*to, method, SessionHash::default(), Outcome::Cancelled, 0);
        }
        self.rules.add(note);
        let series = &self.series;
        let agent = &self.parties.agent;
        self.notes += 1;
        self.counts.notes.count(&series.notes, [note.index()], 1);
        let fault = |from: &Side, at| series.faults.count([*from as usize, at]);
        let limit = |from: &Side, at| series.limits.count([*from as usize, at]);
        let policy = |method: &str, what: PolicyEffect| {
            let method = Method::named(method.as_bytes());
            series.policy.count([method as usize, what as usize]);
        };
        match note {
            Note::Stray { .. }
            | Note::Skipped {
                from: Side::Agent, ..
            } => agent.series.noise.count([]),
            Note::Refused { from, error } => match labels::fault(&error.fault) {
                Ok(at) => fault(from, at),
                Err(at) => limit(from, at),
            },
            Note::Batch { from } => fault(from, labels::BATCH),
            Note::ReusedId { from, .. } => fault(from, labels::REUSED_ID),
            Note::Overloaded { from } => limit(from, labels::IN_FLIGHT),
            Note::UnknownAnswer { from, .. } => series.orphans.count([*from as usize]),
            Note::Undeliverable { to } => series.undeliverable.count([to.other() as usize]),
            Note::Stopping { signal } => self.killed |= *signal == "SIGKILL",
            Note::AgentExited { exit } => agent.exited(*exit, self.killed),
            Note::Translated { .. } => self.translated = true,
            Note::Denied { method, .. } => policy(method, PolicyEffect::Denied),
            Note::Adjusted { method, .. } => policy(method, PolicyEffect::Adjusted),
            _ => {}
        }
    }
}
