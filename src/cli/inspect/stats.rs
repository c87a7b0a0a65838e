//! `acp-relay inspect stats`: counts and durations of conversations.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::select::{self, Part, Recordings, Selection};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::cli::text::{Paint, Tone};
use analysis::figures::{self, Durations, Figures, ToolCall};
use analysis::text::{counted, duration, excerpt, seconds, size};
use jsonrpc::{Kind, Side};
use recording::{EventKind, Exchanges, Message, RecordedEvent, View, ViewFilter, parse_json};

/// Maximum width of a line of counts.
const WIDTH: usize = 78;

/// Number of the slowest tool calls that are printed.
const SLOWEST: usize = 5;

/// Maximum characters of a tool call's name.
const NAME: usize = 48;

/// The arguments of `inspect stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    sources: Inputs,
    /// Which messages to count
    #[arg(long, value_parser = select::view(), default_value = "client")]
    at: View,
    /// One JSON object a file: file, lasted, client, agent (frames, bytes), turns, first_update,
    /// permission, outages (count, p50, p90, p99, max; in seconds), stop_reasons, methods (a list:
    /// from, method, requests, notifications, errors, unanswered, took, bytes), slowest (the slowest
    /// tool calls: n, id, title, lasted), updates, rules, notes, links, noise, stderr_bytes,
    /// missing_events
    #[arg(long)]
    json: bool,
}

/// Statistics of a conversation.
#[derive(Debug, Default, Serialize)]
struct Statistics {
    #[serde(serialize_with = "seconds")]
    lasted: u64,
    /// What the client sent, and what the agent sent.
    client: Traffic,
    agent: Traffic,
    #[serde(serialize_with = "percentiles")]
    turns: Durations,
    /// Stop reasons of turns.
    stop_reasons: Counts,
    #[serde(serialize_with = "percentiles")]
    first_update: Durations,
    #[serde(serialize_with = "percentiles")]
    permission: Durations,
    /// By the calling side, and the method.
    #[serde(serialize_with = "values")]
    methods: BTreeMap<(&'static str, String), Method>,
    /// The slowest tool calls.
    #[serde(serialize_with = "tool_calls")]
    slowest: Vec<ToolCall>,
    /// Kinds of `session/update`.
    updates: Counts,
    rules: Counts,
    notes: Counts,
    links: Counts,
    /// Times without a connection of a side.
    #[serde(serialize_with = "percentiles")]
    outages: Durations,
    noise: u64,
    stderr_bytes: u64,
    missing_events: u64,
    file: String,
    #[serde(skip)]
    conversation: Exchanges,
    /// When each side was lost, if it is.
    #[serde(skip)]
    lost: [Option<u64>; 2],
    #[serde(skip)]
    figures: Figures,
}

/// How often each name occurs.
type Counts = BTreeMap<String, u64>;

/// Messages and their bytes.
#[derive(Debug, Default, Serialize)]
struct Traffic {
    frames: u64,
    bytes: u64,
}

/// Statistics of a method.
#[derive(Debug, Default, Serialize)]
struct Method {
    from: &'static str,
    method: String,
    requests: u64,
    notifications: u64,
    errors: u64,
    unanswered: u64,
    /// From the request to the answer.
    #[serde(serialize_with = "percentiles")]
    took: Durations,
    /// Of requests, notifications and answers.
    bytes: u64,
}

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> Result<ExitCode, ExitCode> {
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let stats = Statistics::of(selection, args.at)?;
        if args.json {
            to.output.line(json!(stats).to_string());
            return Ok(());
        }
        to.head(selection);
        for line in stats.lines(to.paint) {
            to.output.line(line.trim_end());
        }
        Ok(())
    });
    Ok(recordings.done(exit::SUCCESS))
}

/// The median, the 99th percentile and the maximum, as columns.
fn columns(times: &Durations) -> String {
    let [p50, _, p99, max] = times.percentiles();
    let column = |micros: Option<u64>| format!("{:>10}", micros.map(duration).unwrap_or_default());
    [p50, p99, max].map(column).concat()
}

fn percentiles<S: Serializer>(times: &Durations, to: S) -> Result<S::Ok, S::Error> {
    let seconds = |micros| (micros as f64 / 1e6).into();
    times.json(seconds).serialize(to)
}

fn tool_calls<S: Serializer>(calls: &[ToolCall], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(calls.iter().map(|call| {
        let lasted = call.lasted as f64 / 1e6;
        json!({"n": call.n, "id": call.id, "title": call.title, "lasted": lasted})
    }))
}

fn values<K, V: Serialize, S: Serializer>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(map.values())
}

/// `name count, name count`, in lines.
fn list(counts: &Counts) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, count) in counts {
        let item = format!("{} {count}", excerpt(name.as_bytes()));
        match lines.last_mut() {
            Some(line) if line.chars().count() + item.chars().count() + 4 <= WIDTH => {
                *line += &format!(", {item}");
                continue;
            }
            Some(line) => line.push(','),
            None => {}
        }
        lines.push(format!("  {item}"));
    }
    lines
}

impl Statistics {
    /// Of the selected messages in a view.
    fn of(selection: &Selection, view: View) -> Result<Self, ExitCode> {
        let opened = selection.open(ViewFilter::new_empty(view))?;
        let mut stats = Self {
            file: selection.file.display().to_string(),
            ..Self::default()
        };
        opened.each(|part, in_view| {
            if let Part::Event(event) = part {
                stats.count_rules(event);
                if in_view {
                    stats.count(event, view);
                }
            }
        })?;
        let mut figures = std::mem::take(&mut stats.figures);
        for (key, method) in &mut stats.methods {
            method.took = figures.methods.remove(key).unwrap_or_default();
            let answered = method.took.count() as u64;
            method.unanswered = method.requests.saturating_sub(answered);
        }
        stats.first_update = figures.first_updates;
        (stats.turns, stats.permission) = (figures.turns, figures.permission);
        stats.slowest = figures.slowest;
        for side in [Side::Client, Side::Agent] {
            stats.link_changed(side, "end", stats.lasted);
        }
        Ok(stats)
    }

    /// The statistics as text.
    fn lines(&self, paint: Paint) -> Vec<String> {
        const TIMES: &str = "       p50       p99       max";
        let strong = |text: &str| paint.tone(Tone::Strong, text);
        let sent = |sent: &Traffic| format!("{} messages, {}", sent.frames, size(sent.bytes));
        let (client, agent) = (sent(&self.client), sent(&self.agent));
        let lasted = duration(self.lasted);
        let mut lines = vec![
            format!("{lasted}: client {client}; agent {agent}"),
            String::new(),
        ];
        lines.push(strong(&format!("{:<42}{:>6}{TIMES}", "", "count")));
        for (name, times) in [
            ("turn", &self.turns),
            ("first update of a turn", &self.first_update),
            ("wait for permission", &self.permission),
        ] {
            lines.push(format!("{name:<42}{:>6}{}", times.count(), columns(times)));
        }
        lines.push(String::new());
        for side in ["client", "agent"] {
            let mut methods = self
                .methods
                .values()
                .filter(|method| method.from == side)
                .peekable();
            if methods.peek().is_some() {
                let [count, fail, open, note] = ["count", "fail", "open", "note"];
                let heads = format!("{side:<28}{count:>6}{fail:>5}{open:>5}{note:>5}{TIMES}");
                lines.push(strong(&heads));
            }
            lines.extend(methods.map(|method| method.line(paint)));
        }
        for (title, counts) in [
            ("stop reasons", &self.stop_reasons),
            ("updates", &self.updates),
            ("rules", &self.rules),
            ("notes", &self.notes),
            ("links", &self.links),
        ] {
            if !counts.is_empty() {
                lines.extend([String::new(), strong(title)]);
                lines.extend(list(counts));
            }
        }
        if !self.slowest.is_empty() {
            lines.extend([String::new(), strong("slowest tool calls")]);
        }
        for call in self.slowest.iter().take(SLOWEST) {
            let name = if call.title.is_empty() {
                &call.id
            } else {
                &call.title
            };
            let name: String = excerpt(name.as_bytes()).chars().take(NAME).collect();
            let lasted = duration(call.lasted);
            lines.push(format!("{lasted:>10}  {name} (event {})", call.n));
        }
        if self.outages.count() > 0 {
            let lasted = duration(self.outages.sum());
            let outages = counted(self.outages.count() as u64, "outage");
            lines.push(format!("{outages}, {lasted} in all"));
        }
        for (count, what) in [
            (self.noise, "lines that were no message"),
            (self.stderr_bytes, "bytes on stderr"),
            (self.missing_events, "events missing in gaps"),
        ] {
            if count > 0 {
                lines.push(format!("{count} {what}"));
            }
        }
        lines
    }

    /// Counts what does not depend on the view: exchanges and applied rules. They may be recorded
    /// with messages that the relay sent, which are in no view of both sides.
    fn count_rules(&mut self, event: &RecordedEvent) {
        self.conversation.add(event);
        match &event.kind {
            EventKind::Message(message) => {
                self.noise += u64::from(message.is_received() && message.kind.is_none());
                message
                    .rules
                    .iter()
                    .for_each(|rule| count(&mut self.rules, rule));
            }
            // A translation after which nothing of the message was left.
            EventKind::Note { name, text, .. } if name == "translated" => {
                count(&mut self.rules, text);
            }
            _ => {}
        }
    }

    fn count(&mut self, event: &RecordedEvent, view: View) {
        let t = event.t;
        self.lasted = self.lasted.max(t);
        match &event.kind {
            EventKind::Message(message) => self.message(event, message, view),
            EventKind::Stderr(body) => self.stderr_bytes += body.len(),
            EventKind::Note { name, .. } => count(&mut self.notes, name),
            EventKind::Link { side, event, .. } => {
                count(&mut self.links, &format!("{side} {event}"));
                self.link_changed(*side, event, t);
            }
            EventKind::Process { event, .. } => count(&mut self.links, &format!("process {event}")),
            EventKind::Gap { events, .. } => self.missing_events += events,
            _ => {}
        }
    }

    fn link_changed(&mut self, side: Side, event: &str, t: u64) {
        let lost = &mut self.lost[side as usize];
        let lasted = lost.take().map(|lost| t.saturating_sub(lost));
        lasted
            .into_iter()
            .for_each(|lasted| self.outages.push(lasted));
        *lost = (event == "lost").then_some(t);
    }

    fn message(&mut self, event: &RecordedEvent, message: &Message, view: View) {
        let from = message.to.other();
        let sent = match from {
            Side::Client => &mut self.client,
            Side::Agent => &mut self.agent,
        };
        sent.frames += 1;
        sent.bytes += message.body.len();
        let Some(kind) = message.kind else {
            return;
        };
        // Of an answer that is recorded as received and as sent, one event is in the view. It
        // counts for the method of the request in that view.
        let exchange = self.conversation.exchange_in(view, event.n);
        let asked = exchange.filter(|_| kind.is_answer());
        self.figures.add(event, message, asked);
        let caller = figures::caller(message, kind);
        let name = figures::method(message, asked).to_owned();
        let method = self
            .methods
            .entry((caller.name(), name.clone()))
            .or_default();
        (method.from, method.method) = (caller.name(), name.clone());
        method.bytes += message.body.len();
        match kind {
            Kind::Request => method.requests += 1,
            Kind::Notification => method.notifications += 1,
            Kind::Result => {}
            Kind::Error => method.errors += 1,
        }
        let body = || {
            message
                .body
                .bytes()
                .and_then(|bytes| parse_json(bytes))
                .unwrap_or_default()
        };
        match (caller, name.as_str()) {
            (Side::Client, "session/prompt") if kind.is_answer() => {
                let reason = match kind {
                    Kind::Error => "error".to_owned(),
                    _ => body()["result"]["stopReason"]
                        .as_str()
                        .unwrap_or("?")
                        .to_owned(),
                };
                count(&mut self.stop_reasons, &reason);
            }
            (Side::Agent, "session/update") => {
                let body = body();
                let kind = body["params"]["update"]["sessionUpdate"]
                    .as_str()
                    .unwrap_or("?");
                count(&mut self.updates, kind);
            }
            _ => {}
        }
    }
}

impl Method {
    fn line(&self, paint: Paint) -> String {
        let blank = |count: u64| match count {
            0 => String::new(),
            count => count.to_string(),
        };
        let line = format!(
            "{:<28}{:>6}{:>5}{:>5}{:>5}{}",
            excerpt(self.method.as_bytes()),
            blank(self.requests),
            blank(self.errors),
            blank(self.unanswered),
            blank(self.notifications),
            columns(&self.took),
        );
        match self.errors {
            0 => line,
            _ => paint.tone(Tone::Odd, line.trim_end()),
        }
    }
}

fn count(counts: &mut Counts, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}
