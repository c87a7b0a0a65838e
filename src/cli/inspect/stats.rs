//! `acp-relay inspect stats`: counts and durations of conversations.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::select::{Part, Recordings, Selection};
use super::text::{Paint, Tone, duration, excerpt, size};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::jsonrpc::{Kind, Side};
use crate::recording::{
    EventKind, Exchanges, Message, RecordedEvent, View, ViewFilter, parse_json,
};

/// Maximum width of a line of counts.
const WIDTH: usize = 78;

/// The arguments of `inspect stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    sources: Inputs,
    /// Which messages to count
    #[arg(long, value_enum, default_value = "client")]
    at: View,
    /// One JSON object a file: file, lasted, client, agent (frames, bytes), turns, first_update,
    /// permission (count, p50, p99, max; in seconds), stop_reasons, methods (a list: from, method,
    /// requests, notifications, errors, unanswered, took, bytes), updates, rules, notes, links,
    /// noise, stderr_bytes, missing_events
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
    turns: Durations,
    /// Stop reasons of turns.
    stop_reasons: BTreeMap<String, u64>,
    first_update: Durations,
    permission: Durations,
    /// By the calling side, and the method.
    #[serde(serialize_with = "method_list")]
    methods: BTreeMap<(&'static str, String), Method>,
    /// Kinds of `session/update`.
    updates: BTreeMap<String, u64>,
    rules: BTreeMap<String, u64>,
    notes: BTreeMap<String, u64>,
    links: BTreeMap<String, u64>,
    noise: u64,
    stderr_bytes: u64,
    missing_events: u64,
    #[serde(skip)]
    view: View,
    #[serde(skip)]
    conversation: Exchanges,
    /// Open prompts without an update so far, by session: the times of their requests.
    #[serde(skip)]
    open_prompts: BTreeMap<String, u64>,
}

/// Messages and their bytes.
#[derive(Debug, Default, Serialize)]
struct Traffic {
    frames: u64,
    bytes: u64,
}

/// Statistics of a method.
#[derive(Debug, Default)]
struct Method {
    requests: u64,
    notifications: u64,
    errors: u64,
    /// From the request to the answer.
    times: Durations,
    /// Of requests, notifications and answers.
    bytes: u64,
}

/// Durations in microseconds.
#[derive(Debug, Default)]
struct Durations(Vec<u64>);

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> Result<ExitCode, ExitCode> {
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let stats = Statistics::of(selection, args.at)?;
        if args.json {
            let mut value = json!(stats);
            value["file"] = selection.file.display().to_string().into();
            to.output.line(value.to_string().as_bytes());
        } else {
            to.head(selection);
            let text = text(&stats, to.paint);
            to.output.bytes(text.as_bytes());
        }
        Ok(())
    });
    Ok(recordings.done(exit::SUCCESS))
}

/// Statistics as text.
fn text(stats: &Statistics, paint: Paint) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let sent = |sent: &Traffic| format!("{} messages, {}", sent.frames, size(sent.bytes));
    let (client, agent) = (sent(&stats.client), sent(&stats.agent));
    line(&format!(
        "{}: client {client}; agent {agent}",
        duration(stats.lasted)
    ));
    line("");
    let heads = format!(
        "{:<42}{:>6}{:>10}{:>10}{:>10}",
        "", "count", "p50", "p99", "max"
    );
    line(&paint.tone(Tone::Strong, &heads));
    for (name, times) in [
        ("turn", &stats.turns),
        ("first update of a turn", &stats.first_update),
        ("wait for permission", &stats.permission),
    ] {
        let count = times.count();
        line(&format!("{name:<42}{count:>6}{}", durations(times)));
    }
    line("");
    let heads = format!(
        "{:<28}{:>6}{:>5}{:>5}{:>5}{:>10}{:>10}{:>10}",
        "method", "count", "fail", "open", "note", "p50", "p99", "max"
    );
    for side in ["client", "agent"] {
        let of_side = |((from, _), _): &(&(&str, String), _)| *from == side;
        let mut methods = stats.methods.iter().filter(of_side).peekable();
        if methods.peek().is_some() {
            let heads = heads.replacen("method", &format!("{side:<6}"), 1);
            line(&paint.tone(Tone::Strong, &heads));
        }
        for ((_, name), method) in methods {
            let row = row(name, method);
            line(&match method.errors {
                0 => row,
                _ => paint.tone(Tone::Odd, &row),
            });
        }
    }
    for (title, counts) in [
        ("stop reasons", &stats.stop_reasons),
        ("updates", &stats.updates),
        ("rules", &stats.rules),
        ("notes", &stats.notes),
        ("links", &stats.links),
    ] {
        if !counts.is_empty() {
            line("");
            line(&paint.tone(Tone::Strong, title));
            line(&list(counts));
        }
    }
    for (count, what) in [
        (stats.noise, "lines that were no message"),
        (stats.stderr_bytes, "bytes on stderr"),
        (stats.missing_events, "events missing in gaps"),
    ] {
        if count > 0 {
            line(&format!("{count} {what}"));
        }
    }
    out
}

fn row(name: &str, method: &Method) -> String {
    let blank = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    format!(
        "{:<28}{:>6}{:>5}{:>5}{:>5}{}",
        excerpt(name.as_bytes()),
        blank(method.requests),
        blank(method.errors),
        blank(method.unanswered()),
        blank(method.notifications),
        durations(&method.times),
    )
}

fn durations(times: &Durations) -> String {
    times
        .percentiles()
        .map(|micros| format!("{:>10}", micros.map(duration).unwrap_or_default()))
        .concat()
}

/// `name count, name count`, in lines.
fn list(counts: &BTreeMap<String, u64>) -> String {
    let mut out = String::new();
    let mut column = WIDTH;
    for (name, count) in counts {
        let item = format!("{} {count}", excerpt(name.as_bytes()));
        let length = item.chars().count() + 2;
        if column + length > WIDTH {
            out.push_str(if out.is_empty() { "  " } else { ",\n  " });
            column = 2;
        } else {
            out.push_str(", ");
        }
        column += length;
        out.push_str(&item);
    }
    out
}

impl Method {
    const fn unanswered(&self) -> u64 {
        self.requests.saturating_sub(self.times.count() as u64)
    }
}

impl Durations {
    /// The median, the 99th percentile and the maximum, by nearest rank.
    fn percentiles(&self) -> [Option<u64>; 3] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        [50, 99, 100].map(|percent| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.checked_sub(1)?).copied()
        })
    }

    const fn count(&self) -> usize {
        self.0.len()
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let [p50, p99, max] = self
            .percentiles()
            .map(|at| at.map(|micros| micros as f64 / 1e6));
        json!({"count": self.count(), "p50": p50, "p99": p99, "max": max}).serialize(to)
    }
}

fn seconds<S: Serializer>(micros: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*micros as f64 / 1e6)
}

fn method_list<S: Serializer>(
    methods: &BTreeMap<(&'static str, String), Method>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(methods.iter().map(|((from, name), method)| {
        json!({
            "from": from,
            "method": name,
            "requests": method.requests,
            "notifications": method.notifications,
            "errors": method.errors,
            "unanswered": method.unanswered(),
            "took": method.times,
            "bytes": method.bytes,
        })
    }))
}

impl Statistics {
    /// Of the selected messages in a view.
    fn of(selection: &Selection, view: View) -> Result<Self, ExitCode> {
        let opened = selection.open(ViewFilter::new_empty(view))?;
        let mut stats = Self {
            view,
            ..Self::default()
        };
        opened.each(|part, in_view| {
            if let Part::Event(event) = part {
                stats.count_rules(event);
                if in_view {
                    stats.count(event);
                }
            }
        })?;
        Ok(stats)
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

    fn count(&mut self, event: &RecordedEvent) {
        self.lasted = self.lasted.max(event.t);
        match &event.kind {
            EventKind::Message(message) => self.message(event, message),
            EventKind::Stderr(body) => self.stderr_bytes += body.len(),
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
        let sent = match from {
            Side::Client => &mut self.client,
            Side::Agent => &mut self.agent,
        };
        sent.frames += 1;
        sent.bytes += message.body.len();
        // Of an answer that is recorded as received and as sent, one event is in the view. It
        // counts for the method of the request in that view.
        let is_answer = message.kind.is_some_and(Kind::is_answer);
        let exchange = self.conversation.exchange_in(self.view, event.n);
        let asked = exchange.filter(|_| is_answer);
        let took = asked.map(|asked| event.t.saturating_sub(asked.requested_at));
        let Some(kind) = message.kind else {
            return;
        };
        let caller = if kind.is_answer() { message.to } else { from };
        let name = asked
            .map(|asked| asked.method.as_str())
            .filter(|name| !name.is_empty());
        let name = name.or(message.method.as_deref()).unwrap_or("?").to_owned();
        let session = asked
            .and_then(|asked| asked.session.as_ref())
            .or(message.session.as_ref());
        let session = session.cloned().unwrap_or_default();
        let method = self
            .methods
            .entry((caller.name(), name.clone()))
            .or_default();
        method.bytes += message.body.len();
        match kind {
            Kind::Request => method.requests += 1,
            Kind::Notification => method.notifications += 1,
            Kind::Result => {}
            Kind::Error => method.errors += 1,
        }
        method.times.0.extend(took);
        match (caller, name.as_str()) {
            (Side::Client, "session/prompt") if kind == Kind::Request => {
                self.open_prompts.insert(session, event.t);
            }
            (Side::Client, "session/prompt") => self.turn_end(&session, took, message),
            (Side::Agent, "session/update") => self.update(event.t, &session, message),
            (Side::Agent, "session/request_permission") => self.permission.0.extend(took),
            _ => {}
        }
    }

    fn turn_end(&mut self, session: &str, took: Option<u64>, message: &Message) {
        self.open_prompts.remove(session);
        self.turns.0.extend(took);
        let body = message
            .body
            .bytes()
            .and_then(|bytes| parse_json(bytes))
            .unwrap_or_default();
        let reason = match message.kind {
            Some(Kind::Error) => Some("error"),
            _ => body.pointer("/result/stopReason").and_then(Value::as_str),
        };
        count(&mut self.stop_reasons, reason.unwrap_or("?"));
    }

    fn update(&mut self, t: u64, session: &str, message: &Message) {
        let body = message
            .body
            .bytes()
            .and_then(|bytes| parse_json(bytes))
            .unwrap_or_default();
        let kind = body
            .pointer("/params/update/sessionUpdate")
            .and_then(Value::as_str);
        let kind = kind.unwrap_or("?");
        count(&mut self.updates, kind);
        let is_output = kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan";
        if is_output && let Some(asked) = self.open_prompts.remove(session) {
            self.first_update.0.push(t.saturating_sub(asked));
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}
