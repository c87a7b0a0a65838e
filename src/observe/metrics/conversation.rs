//! The observer that counts one conversation.
//!
//! It counts in plain integers and hands them to [`Metrics`] after each batch of messages, before
//! they are written to the other side, and after each turn of the loop.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use smallvec::SmallVec;

use super::agent::{AgentMetrics, SessionStart};
use super::buckets::{Samples, nanos, size_bucket};
use super::labels::{self, Closing, Outcome, PolicyEffect};
use super::registry::Pending;
use super::rules::RuleCounters;
use super::shared::Metrics;
use super::stats::{Live, Parties, State};
use super::tokens::TokenUsage;
use crate::conversation::{
    Content, MessageSummary, Method, Note, PermissionOutcome, SessionHash, StopReason,
};
use crate::jsonrpc::{Frame, Kind, Side};
use crate::observe::{Event, Observer, Stat};

/// Counts one conversation. Dropping it counts the end.
#[derive(Debug)]
pub struct ConversationMetrics {
    metrics: Arc<Metrics>,
    agent: Arc<AgentMetrics>,
    live: Arc<Live>,
    number: u64,
    state: State,
    counts: Counts,
    rules: RuleCounters,
    turns: SmallVec<[Turn; 2]>,
    tokens: TokenUsage,
    /// Rules were applied since processing time was last counted.
    translated: bool,
    /// The agent has answered `initialize`.
    ready: bool,
    /// The agent was sent SIGKILL.
    killed: bool,
    /// When a message was last received.
    last: Instant,
    closing: Closing,
}

/// What is not handed over yet.
#[derive(Debug, Default)]
struct Counts {
    any: bool,
    messages: Pending,
    requests: Pending,
    notes: Pending,
    tool_calls: Pending,
    tool_results: Pending,
    /// Received from each side and sent to it.
    bytes: [[u64; 2]; 2],
    /// By sender and kind.
    sizes: [[Samples; 3]; 2],
    /// By sender, and whether rules were applied.
    processing: [[Samples; 2]; 2],
    gaps: Samples,
}

/// An open turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    session: SessionHash,
    /// When it was requested, or its last update was received.
    since: Instant,
    /// An update was received.
    begun: bool,
}

impl Metrics {
    /// A conversation begins. The observer counts it until it is dropped.
    #[must_use]
    pub fn begin(self: &Arc<Self>, parties: Parties) -> ConversationMetrics {
        let number = self.next.fetch_add(1, Relaxed);
        for (side, transport) in parties.transports.into_iter().enumerate() {
            let place = [side, transport as usize];
            self.series.connections.at(place).increment(1);
            // The series stays when the connection does not.
            let _ = self.series.connections_open.at(place);
        }
        let live = Arc::new(Live::new(parties));
        self.live.lock().insert(number, Arc::clone(&live));
        ConversationMetrics::new(Arc::clone(self), live, number)
    }
}

impl ConversationMetrics {
    fn new(metrics: Arc<Metrics>, live: Arc<Live>, number: u64) -> Self {
        Self {
            last: live.parties.since,
            agent: Arc::clone(&live.parties.agent),
            metrics,
            live,
            number,
            state: State::default(),
            counts: Counts::default(),
            rules: RuleCounters::default(),
            turns: SmallVec::new(),
            tokens: TokenUsage::default(),
            translated: false,
            ready: false,
            killed: false,
            closing: Closing::Stopped,
        }
    }

    /// Hands over what was counted.
    fn flush_counts(&mut self) {
        let counts = &mut self.counts;
        if !std::mem::take(&mut counts.any) {
            return;
        }
        let (series, agent) = (&self.metrics.series, &self.agent.series);
        counts.messages.flush(&series.messages);
        counts.requests.flush(&series.requests);
        counts.notes.flush(&series.notes);
        counts.tool_calls.flush(&agent.tool_calls);
        counts.tool_results.flush(&agent.tool_results);
        let transports = self.live.parties.transports;
        for (side, (flows, transport)) in counts.bytes.iter_mut().zip(transports).enumerate() {
            for (flow, bytes) in flows.iter_mut().enumerate() {
                if *bytes > 0 {
                    let counter = series.bytes.at([side, transport as usize, flow]);
                    counter.increment(std::mem::take(bytes));
                }
            }
        }
        for (from, kinds) in counts.sizes.iter_mut().enumerate() {
            for (kind, sizes) in kinds.iter_mut().enumerate() {
                sizes.flush(|| series.sizes.at([from, kind]));
            }
        }
        for (from, both) in counts.processing.iter_mut().enumerate() {
            for (translated, took) in both.iter_mut().enumerate() {
                took.flush(|| series.processing.at([from, translated]));
            }
        }
        counts.gaps.flush(|| agent.gaps.at([]));
        self.rules.flush();
        self.live.publish(&self.state);
    }

    fn passed(&mut self, summary: &MessageSummary) {
        let (from, kind) = (summary.from as usize, labels::kind(summary.kind));
        let method = summary.topic.method;
        let place = [from, kind, method as usize];
        let series = &self.metrics.series;
        self.counts.messages.add(&series.messages, place);
        self.counts.sizes[from][kind].add(size_bucket(summary.bytes), 1, summary.bytes as u64);
        self.last = summary.at;
        match summary.kind {
            Kind::Notification => {
                if method == Method::SessionUpdate && summary.from == Side::Agent {
                    self.updated(summary);
                }
            }
            Kind::Request => {
                self.state.in_flight[from][method as usize] += 1;
                // The series is there from the first request, also when no scrape meets it open.
                let _ = series.in_flight.at([from, method as usize]);
                if method == Method::SessionPrompt && summary.from == Side::Client {
                    self.state.turns += 1;
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
        for turn in &mut self.turns {
            if turn.session != summary.topic.session {
                continue;
            }
            let waited = summary.at.saturating_duration_since(turn.since);
            if turn.begun {
                let bucket = self.agent.series.gaps.at([]).bucket(waited);
                self.counts.gaps.add(bucket, 1, nanos(waited));
            } else {
                self.agent.series.first_update.at([]).record(waited);
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
            self.metrics.series.durations.at(place).record(waited);
        }
        let agent = &self.agent;
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
                self.metrics
                    .series
                    .permissions
                    .at([verdict as usize])
                    .record(waited);
            }
            Method::Initialize if done && asker == Side::Client && !self.ready => {
                self.ready = true;
                let took = summary
                    .at
                    .saturating_duration_since(self.live.parties.since);
                agent.series.start.at([]).record(took);
            }
            Method::SessionNew if done => self.session_opened(SessionStart::New),
            Method::SessionLoad if done => self.session_opened(SessionStart::Load),
            Method::SessionResume if done => self.session_opened(SessionStart::Resume),
            Method::SessionClose if done => {
                self.state.sessions = self.state.sessions.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn session_opened(&mut self, how: SessionStart) {
        self.state.sessions += 1;
        self.agent.session_opened(how);
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
        self.counts
            .requests
            .add(&self.metrics.series.requests, place);
        let open = &mut self.state.in_flight[from][at];
        *open = open.saturating_sub(1);
        if method != Method::SessionPrompt || asker != Side::Client {
            return;
        }
        self.state.turns = self.state.turns.saturating_sub(1);
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
                let calls = &self.agent.series.tool_calls;
                self.counts.tool_calls.add(calls, [kind as usize]);
                status
            }
            Content::ToolUpdated(status) => Some(status),
            #[expect(clippy::cast_precision_loss, reason = "it is a ratio")]
            Content::ContextUsed(used, size) if size > 0 => {
                self.state.context = Some(used as f64 / size as f64);
                None
            }
            _ => None,
        };
        if let Some(result) = status.and_then(AgentMetrics::result) {
            let results = &self.agent.series.tool_results;
            self.counts.tool_results.add(results, [result]);
        }
    }

    fn note(&mut self, note: &Note) {
        if let Note::Answered {
            to, method, code, ..
        } = note
        {
            let code = i64::from(*code);
            let place = [*to as usize, labels::code(code)];
            self.metrics.series.synthesised.at(place).increment(1);
            let method = Method::named(method.as_bytes());
            let outcome = Outcome::ProxyError;
            self.settle(*to, method, SessionHash::default(), outcome, code);
        }
        let Self {
            metrics,
            agent,
            rules,
            ..
        } = self;
        self.state.notes += 1;
        self.counts.notes.add(&metrics.series.notes, [note.index()]);
        let fault = |from: &Side, at| metrics.series.faults.at([*from as usize, at]).increment(1);
        let limit = |from: &Side, at| metrics.series.limits.at([*from as usize, at]).increment(1);
        match note {
            Note::Stray { .. } => agent.series.noise.at([]).increment(1),
            Note::Refused { from, error } => match labels::fault(&error.fault) {
                Ok(at) => fault(from, at),
                Err(at) => limit(from, at),
            },
            Note::Batch { from } => fault(from, labels::BATCH),
            Note::ReusedId { from, .. } => fault(from, labels::REUSED_ID),
            Note::Overloaded { from } => limit(from, labels::IN_FLIGHT),
            Note::UnknownAnswer { from, .. } => {
                metrics.series.orphans.at([*from as usize]).increment(1);
            }
            Note::Undeliverable { to } => {
                let from = to.other() as usize;
                metrics.series.undeliverable.at([from]).increment(1);
            }
            Note::Stopping { signal } => self.killed |= *signal == "SIGKILL",
            Note::AgentExited { exit } => agent.exited(*exit, self.killed),
            Note::Translated {
                side, rules: fired, ..
            } => {
                self.translated = true;
                for rule in fired {
                    let names = [&*rule.dialect, &*rule.rule];
                    rules.add(&metrics.registry, "translations_total", names, *side);
                }
            }
            Note::Dialect {
                side,
                what,
                dialect,
                ..
            } => {
                let names = [dialect, what.name()];
                rules.add(&metrics.registry, "dialect_events_total", names, *side);
            }
            Note::Denied { method, .. } => metrics.policy(method, PolicyEffect::Denied),
            Note::Adjusted { method, .. } => metrics.policy(method, PolicyEffect::Adjusted),
            _ => {}
        }
    }

    fn received(&mut self, from: Side, frame: &Frame) {
        let (from, bytes) = (from as usize, frame.len() as u64);
        self.state.messages[from] += 1;
        self.state.bytes[from] += bytes;
        self.counts.bytes[from][0] += bytes;
        self.counts.any = true;
    }
}

impl Observer for ConversationMetrics {
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Received(from, frame) => self.received(*from, frame),
            Event::Sent(to, frame) => {
                self.counts.bytes[*to as usize][1] += frame.len() as u64;
                self.counts.any = true;
            }
            Event::Note(note) => {
                self.note(note);
                self.counts.any = true;
                // These come with messages that are passed on; all others are rare.
                if !matches!(note, Note::Translated { .. } | Note::Dialect { .. }) {
                    self.flush_counts();
                }
            }
            Event::Parsed(_) | Event::Settled(_) => {}
        }
    }

    fn wants_stats(&self) -> bool {
        true
    }

    fn on_stat(&mut self, stat: &Stat<'_>) {
        match stat {
            Stat::Forwarded(summary) => {
                self.passed(summary);
                self.counts.any = true;
            }
            Stat::Paused(side, took) => self.metrics.paused(*side, *took),
            Stat::Processed {
                from,
                messages,
                took,
            } => {
                let translated = std::mem::take(&mut self.translated);
                let place = [*from as usize, usize::from(translated)];
                let mean = *took / u32::try_from(*messages).unwrap_or(u32::MAX).max(1);
                let bucket = self.metrics.series.processing.at(place).bucket(mean);
                let [from, translated] = place;
                self.counts.processing[from][translated].add(bucket, *messages, nanos(*took));
                self.counts.any = true;
                self.flush_counts();
            }
            Stat::Queued(bytes) => {
                self.counts.any |= self.state.queued != *bytes;
                self.state.queued = *bytes;
            }
            Stat::Ended(cause, now) => {
                self.closing = Closing::of(cause);
                self.last = *now;
            }
        }
    }

    fn flush(&mut self) {
        self.flush_counts();
    }
}

impl Drop for ConversationMetrics {
    fn drop(&mut self) {
        self.flush_counts();
        let lasted = self.last.saturating_duration_since(self.live.parties.since);
        self.metrics
            .ended(self.number, &self.live.parties, lasted, self.closing);
    }
}
