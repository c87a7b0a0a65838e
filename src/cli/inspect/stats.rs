//! `acp-relay inspect stats`: counts and durations of conversations.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::select::{self, Part, Recordings, Selection};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::cli::text::{Paint, Tone};
use analysis::figures::{self, Durations, Figures, MethodFigures};
use analysis::text::{counted, duration, excerpt, size};
use jsonrpc::{Kind, Side};
use recording::{
    EventKind, Exchanges, Message, RecordedEvent, Summary, View, ViewFilter, parse_json,
};

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
#[derive(Debug, Default)]
struct Statistics {
    summary: Summary,
    figures: Figures,
    conversation: Exchanges,
    /// What the client sent, and what the agent sent.
    client: Traffic,
    agent: Traffic,
    /// Stop reasons of turns.
    stop_reasons: Counts,
    /// Kinds of `session/update`.
    updates: Counts,
    rules: Counts,
    notes: Counts,
    links: Counts,
    /// Times without a connection of a side.
    outages: Durations,
    noise: u64,
    stderr_bytes: u64,
    missing_events: u64,
}

/// How often each name occurs.
type Counts = BTreeMap<String, u64>;

/// Messages and their bytes.
#[derive(Debug, Default, Serialize)]
struct Traffic {
    frames: u64,
    bytes: u64,
}

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> Result<ExitCode, ExitCode> {
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let stats = Statistics::of(selection, args.at)?;
        if args.json {
            to.output.line(stats.json(selection).to_string());
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
        let mut stats = Self::default();
        opened.each(|part, in_view| {
            if let Part::Event(event) = part {
                stats.count_rules(event);
                if in_view {
                    stats.count(event, view);
                }
            }
        })?;
        let lasted = stats.summary.lasted;
        for (from, to, _) in &stats.summary.outages {
            stats.outages.push(to.unwrap_or(lasted) - from);
        }
        Ok(stats)
    }

    fn json(&self, selection: &Selection) -> Value {
        let times = |times: &Durations| times.json(seconds);
        let methods = self.figures.methods.iter().map(|((from, method), own)| {
            json!({
                "from": from,
                "method": method,
                "requests": own.requests,
                "notifications": own.notifications,
                "errors": own.errors,
                "unanswered": unanswered(own),
                "took": times(&own.took),
                "bytes": own.bytes,
            })
        });
        let slowest = self.figures.slowest.iter().map(|call| {
            let lasted = seconds(call.lasted);
            json!({"n": call.n, "id": call.id, "title": call.title, "lasted": lasted})
        });
        json!({
            "lasted": seconds(self.summary.lasted),
            "client": self.client,
            "agent": self.agent,
            "turns": times(&self.figures.turns),
            "stop_reasons": self.stop_reasons,
            "first_update": times(&self.figures.first_updates),
            "permission": times(&self.figures.permission),
            "methods": methods.collect::<Vec<_>>(),
            "slowest": slowest.collect::<Vec<_>>(),
            "updates": self.updates,
            "rules": self.rules,
            "notes": self.notes,
            "links": self.links,
            "outages": times(&self.outages),
            "noise": self.noise,
            "stderr_bytes": self.stderr_bytes,
            "missing_events": self.missing_events,
            "file": selection.file.display().to_string(),
        })
    }

    /// The statistics as text.
    fn lines(&self, paint: Paint) -> Vec<String> {
        const TIMES: &str = "       p50       p99       max";
        let strong = |text: &str| paint.tone(Tone::Strong, text);
        let sent = |sent: &Traffic| format!("{} messages, {}", sent.frames, size(sent.bytes));
        let (client, agent) = (sent(&self.client), sent(&self.agent));
        let lasted = duration(self.summary.lasted);
        let mut lines = vec![
            format!("{lasted}: client {client}; agent {agent}"),
            String::new(),
        ];
        lines.push(strong(&format!("{:<42}{:>6}{TIMES}", "", "count")));
        for (name, times) in [
            ("turn", &self.figures.turns),
            ("first update of a turn", &self.figures.first_updates),
            ("wait for permission", &self.figures.permission),
        ] {
            lines.push(format!("{name:<42}{:>6}{}", times.count(), columns(times)));
        }
        lines.push(String::new());
        for side in ["client", "agent"] {
            let methods = self.figures.methods.iter();
            let mut methods = methods.filter(|((from, _), _)| *from == side).peekable();
            if methods.peek().is_some() {
                let [count, fail, open, note] = ["count", "fail", "open", "note"];
                let heads = format!("{side:<28}{count:>6}{fail:>5}{open:>5}{note:>5}{TIMES}");
                lines.push(strong(&heads));
            }
            lines.extend(methods.map(|((_, name), own)| method_line(name, own, paint)));
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
        if !self.figures.slowest.is_empty() {
            lines.extend([String::new(), strong("slowest tool calls")]);
        }
        for call in self.figures.slowest.iter().take(SLOWEST) {
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
        self.summary.add_event(event);
        match &event.kind {
            EventKind::Message(message) => self.message(event, message, view),
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
        let name = figures::method(message, asked);
        let bytes = message.body.bytes();
        let tree = || {
            bytes
                .and_then(|bytes| parse_json(bytes))
                .unwrap_or_default()
        };
        let word = |place| match tree().pointer(place).and_then(Value::as_str) {
            Some(word) => word.to_owned(),
            None => "?".to_owned(),
        };
        match (caller, name, kind) {
            (Side::Client, "session/prompt", Kind::Error) => count(&mut self.stop_reasons, "error"),
            (Side::Client, "session/prompt", Kind::Result) => {
                count(&mut self.stop_reasons, &word("/result/stopReason"));
            }
            (Side::Agent, "session/update", _) => {
                count(&mut self.updates, &word("/params/update/sessionUpdate"));
            }
            _ => {}
        }
    }
}

/// A method in one line.
fn method_line(name: &str, own: &MethodFigures, paint: Paint) -> String {
    let blank = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    let line = format!(
        "{:<28}{:>6}{:>5}{:>5}{:>5}{}",
        excerpt(name.as_bytes()),
        blank(own.requests),
        blank(own.errors),
        blank(unanswered(own)),
        blank(own.notifications),
        columns(&own.took),
    );
    match own.errors {
        0 => line,
        _ => paint.tone(Tone::Odd, line.trim_end()),
    }
}

/// The number of requests without an answer.
const fn unanswered(own: &MethodFigures) -> u64 {
    own.requests.saturating_sub(own.took.count() as u64)
}

fn seconds(micros: u64) -> Value {
    (micros as f64 / 1e6).into()
}

fn count(counts: &mut Counts, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}
