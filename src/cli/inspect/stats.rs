//! `acp-relay inspect stats`: statistics of conversations. `stats_report` prints them.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::paint::Paint;
use super::recordings::Recordings;
use super::select::{Selection, Viewpoint};
use super::stats_report;
use crate::cli::console::Output;
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::jsonrpc::Side;
use crate::recording::{
    EventKind, Exchanges, Message, MessageKind, RecordedEvent, View, parse_json,
};

/// The arguments of `inspect stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    sources: Inputs,
    /// Which messages to count
    #[arg(long, value_enum, default_value = "client")]
    at: Viewpoint,
    /// One JSON object a file: file, lasted, client, agent (frames, bytes), turns, first_update,
    /// permission (count, p50, p99, max; in seconds), stop_reasons, methods (a list: from, method,
    /// requests, notifications, errors, unanswered, took, bytes), updates, rules, notes, links,
    /// noise, stderr_bytes, missing_events
    #[arg(long)]
    json: bool,
}

/// Statistics of a conversation.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// By the calling side, and the method.
    pub(super) methods: BTreeMap<(&'static str, String), Method>,
    /// Kinds of `session/update`.
    pub(super) updates: BTreeMap<String, u64>,
    /// Stop reasons of turns.
    pub(super) stop_reasons: BTreeMap<String, u64>,
    pub(super) turns: Durations,
    pub(super) first_update: Durations,
    pub(super) permission: Durations,
    /// Frames and bytes sent by the client and by the agent.
    pub(super) sent: [(u64, u64); 2],
    pub(super) noise: u64,
    pub(super) stderr: u64,
    pub(super) rules: BTreeMap<String, u64>,
    pub(super) notes: BTreeMap<String, u64>,
    pub(super) links: BTreeMap<String, u64>,
    pub(super) missing_events: u64,
    pub(super) lasted: u64,
    view: View,
    conversation: Exchanges,
    /// Open prompts without an update so far, by session: the times of their requests.
    open_prompts: BTreeMap<String, u64>,
}

/// Statistics of a method.
#[derive(Debug, Default)]
pub(super) struct Method {
    pub(super) requests: u64,
    pub(super) notifications: u64,
    pub(super) errors: u64,
    /// From the request to the answer.
    pub(super) times: Durations,
    /// Of requests, notifications and answers.
    pub(super) bytes: u64,
}

/// Durations in microseconds.
#[derive(Debug, Default)]
pub(super) struct Durations(Vec<u64>);

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> ExitCode {
    let (files, filter) = match args.sources.read() {
        Ok(read) => read,
        Err(code) => return code,
    };
    let mut output = Output::new();
    let paint = Paint::of(&output);
    let mut recordings = Recordings::of(files, filter);
    while let Some(selection) = recordings.next(&mut output) {
        let mut stats = match count(&selection, args.at) {
            Ok(figures) => figures,
            Err(code) => {
                recordings.fail(code);
                continue;
            }
        };
        if args.json {
            let mut value = stats_report::json(&mut stats);
            value["file"] = selection.file.display().to_string().into();
            output.line(value.to_string().as_bytes());
        } else {
            recordings.head(&selection, paint, &mut output);
            output.bytes(stats_report::text(&mut stats, paint).as_bytes());
        }
    }
    recordings.done(output, exit::SUCCESS)
}

fn count(selection: &Selection, at: Viewpoint) -> Result<Statistics, ExitCode> {
    let chosen = selection.open(Some(at))?;
    let mut stats = Statistics {
        view: at.view(),
        ..Statistics::default()
    };
    let see = |event: &RecordedEvent, in_view| {
        stats.count_rules(event);
        if in_view {
            stats.count(event);
        }
    };
    chosen.each_with_view(|_| {}, see)?;
    Ok(stats)
}

impl Durations {
    /// The nearest-rank percentile.
    pub(super) fn percentile(&mut self, percent: usize) -> Option<u64> {
        self.0.sort_unstable();
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.checked_sub(1)?).copied()
    }

    pub(super) const fn count(&self) -> usize {
        self.0.len()
    }
}

impl Statistics {
    /// Counts what does not depend on the view: exchanges and applied rules. They may be recorded
    /// with messages that the relay sent, which are in no view of both sides.
    fn count_rules(&mut self, event: &RecordedEvent) {
        self.conversation.add(event);
        match &event.kind {
            EventKind::Message(message) => {
                self.noise += u64::from(message.is_received() && message.kind.is_none());
                for rule in &message.rules {
                    *self.rules.entry(rule.clone()).or_default() += 1;
                }
            }
            // A translation after which nothing of the message was left.
            EventKind::Note { name, text, .. } if name == "translated" => {
                *self.rules.entry(text.clone()).or_default() += 1;
            }
            _ => {}
        }
    }

    fn count(&mut self, event: &RecordedEvent) {
        self.lasted = self.lasted.max(event.t);
        let count = |map: &mut BTreeMap<String, u64>, name: &str| {
            *map.entry(name.to_owned()).or_default() += 1;
        };
        match &event.kind {
            EventKind::Message(message) => self.message(event, message),
            EventKind::Stderr(body) => self.stderr += body.len(),
            EventKind::Note { name, .. } => count(&mut self.notes, name),
            EventKind::Link { side, event, .. } => {
                count(&mut self.links, &format!("{side} {event}"))
            }
            EventKind::Process { event, .. } => count(&mut self.links, &format!("process {event}")),
            EventKind::Gap { events, .. } => self.missing_events += events,
            _ => {}
        }
    }

    fn message(&mut self, event: &RecordedEvent, message: &Message) {
        let from = message.to.other();
        let (frames, bytes) = &mut self.sent[from as usize];
        *frames += 1;
        *bytes += message.body.len();
        // Of an answer that is recorded as received and as sent, one event is in the view. It
        // counts for the method of the request in that view.
        let is_answer = message.kind.is_some_and(MessageKind::is_answer);
        let exchange = self.conversation.exchange_in(self.view, event.n);
        let answered = exchange.filter(|_| is_answer);
        let took = answered.map(|exchange| event.t.saturating_sub(exchange.requested_at));
        let request = answered.map(|exchange| (exchange.method.clone(), exchange.session.clone()));
        let (requested, session) = request.unwrap_or_default();
        let Some(kind) = message.kind else {
            return;
        };
        let caller = if kind.is_answer() { message.to } else { from };
        let name = Some(requested).filter(|name| !name.is_empty());
        let name = name.or_else(|| message.method.clone());
        let name = name.unwrap_or_else(|| "?".to_owned());
        let method = self
            .methods
            .entry((caller.name(), name.clone()))
            .or_default();
        method.bytes += message.body.len();
        match kind {
            MessageKind::Request => method.requests += 1,
            MessageKind::Notification => method.notifications += 1,
            MessageKind::Result => {}
            MessageKind::Error => method.errors += 1,
        }
        method.times.0.extend(took);
        let session = session.or_else(|| message.session.clone());
        let session = session.unwrap_or_default();
        match (caller, name.as_str()) {
            (Side::Client, "session/prompt") => self.prompt(kind, event.t, session, took, message),
            (Side::Agent, "session/update") => self.update(event.t, &session, message),
            (Side::Agent, "session/request_permission") => self.permission.0.extend(took),
            _ => {}
        }
    }

    fn prompt(
        &mut self,
        kind: MessageKind,
        t: u64,
        session: String,
        took: Option<u64>,
        message: &Message,
    ) {
        if kind == MessageKind::Request {
            self.open_prompts.insert(session, t);
            return;
        }
        self.open_prompts.remove(&session);
        self.turns.0.extend(took);
        let body = message.body.bytes().and_then(|bytes| parse_json(bytes));
        let reason = match kind {
            MessageKind::Error => Some("error"),
            _ => body
                .as_ref()
                .and_then(|b| b.pointer("/result/stopReason")?.as_str()),
        };
        *self
            .stop_reasons
            .entry(reason.unwrap_or("?").to_owned())
            .or_default() += 1;
    }

    fn update(&mut self, t: u64, session: &str, message: &Message) {
        let body = message.body.bytes().and_then(|bytes| parse_json(bytes));
        let kind = body.as_ref();
        let kind = kind.and_then(|b| b.pointer("/params/update/sessionUpdate"));
        let kind = kind.and_then(Value::as_str).unwrap_or("?");
        *self.updates.entry(kind.to_owned()).or_default() += 1;
        let is_output = kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan";
        if is_output && let Some(start) = self.open_prompts.remove(session) {
            self.first_update.0.push(t.saturating_sub(start));
        }
    }
}
