//! Counts and durations of a conversation in one view, collected event by event.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::figures::{self, Durations, Figures};
use jsonrpc::{Kind, Side};
use recording::{EventKind, Exchanges, Message, RecordedEvent, Summary, View, parse_json};

/// Statistics of a conversation.
#[derive(Debug, Default)]
pub struct Statistics {
    view: View,
    exchanges: Exchanges,
    /// The totals.
    pub summary: Summary,
    /// The messages by method, and durations.
    pub figures: Figures,
    /// What the client sent.
    pub client: SentTotals,
    /// What the agent sent.
    pub agent: SentTotals,
    /// The stop reasons of turns.
    pub stop_reasons: NameCounts,
    /// The kinds of `session/update`.
    pub updates: NameCounts,
    /// The rules that changed messages.
    pub rules: NameCounts,
    /// The notes of the relay.
    pub notes: NameCounts,
    /// What happened to links and processes.
    pub links: NameCounts,
    /// Lines that were no message.
    pub noise: u64,
    /// Bytes on the agent's stderr.
    pub stderr_bytes: u64,
    /// Events that are missing in gaps.
    pub missing_events: u64,
}

/// How often each name occurs.
pub type NameCounts = BTreeMap<String, u64>;

/// Messages and their bytes.
#[derive(Debug, Default, Serialize)]
pub struct SentTotals {
    /// The number of messages.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Statistics {
    /// Of the messages in a view.
    #[must_use]
    pub fn new(view: View) -> Self {
        Self {
            view,
            ..Self::default()
        }
    }

    /// Adds an event, which has no message, or one that is in the view or is not.
    pub fn add(&mut self, event: &RecordedEvent, in_view: bool) {
        // Exchanges and applied rules do not depend on the view. They may be recorded with messages
        // that the relay sent, which are in no view of both sides.
        self.exchanges.add(event);
        match &event.kind {
            EventKind::Message(message) => {
                self.noise += u64::from(message.is_received() && message.kind.is_none());
                let rules = message.rules.iter();
                rules.for_each(|rule| count(&mut self.rules, rule));
            }
            // A translation after which nothing of the message was left.
            EventKind::Note { name, text, .. } if name == "translated" => {
                count(&mut self.rules, text);
            }
            _ => {}
        }
        if !in_view {
            return;
        }
        self.summary.add_event(event);
        match &event.kind {
            EventKind::Message(message) => self.message(event, message),
            EventKind::Stderr(body) => self.stderr_bytes += body.len(),
            EventKind::Note { name, .. } => count(&mut self.notes, name),
            EventKind::Link { side, event, .. } => {
                count(&mut self.links, &format!("{side} {event}"));
            }
            EventKind::Process { event, .. } => count(&mut self.links, &format!("process {event}")),
            EventKind::Gap { events, .. } => self.missing_events += events,
            _ => {}
        }
    }

    /// The times without a connection of a side.
    #[must_use]
    pub fn outages(&self) -> Durations {
        let mut outages = Durations::default();
        for (from, to, _) in &self.summary.outages {
            outages.push(to.unwrap_or(self.summary.lasted) - from);
        }
        outages
    }

    /// The statistics of the conversation in `file`; times in seconds.
    #[must_use]
    pub fn json(&self, file: &str) -> Value {
        let times = |times: &Durations| times.json(seconds);
        let methods = self.figures.methods.iter().map(|((from, method), own)| {
            json!({
                "from": from,
                "method": method,
                "requests": own.requests,
                "notifications": own.notifications,
                "errors": own.errors,
                "unanswered": own.unanswered(),
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
            "methods": methods.collect::<Value>(),
            "slowest": slowest.collect::<Value>(),
            "updates": self.updates,
            "rules": self.rules,
            "notes": self.notes,
            "links": self.links,
            "outages": times(&self.outages()),
            "noise": self.noise,
            "stderr_bytes": self.stderr_bytes,
            "missing_events": self.missing_events,
            "file": file,
        })
    }

    fn message(&mut self, event: &RecordedEvent, message: &Message) {
        let sent = match message.to {
            Side::Agent => &mut self.client,
            Side::Client => &mut self.agent,
        };
        sent.frames += 1;
        sent.bytes += message.body.len();
        let Some(kind) = message.kind else {
            return;
        };
        // Of an answer that is recorded as received and as sent, one event is in the view. It
        // counts for the method of the request in that view.
        let exchange = self.exchanges.exchange_in(self.view, event.n);
        let asked = exchange.filter(|_| kind.is_answer());
        self.figures.add(event, message, asked);
        let word = |place| {
            let tree = message.body.bytes().and_then(|bytes| parse_json(bytes));
            let tree = tree.unwrap_or_default();
            let word = tree.pointer(place).and_then(Value::as_str);
            word.unwrap_or("?").to_owned()
        };
        let (caller, method) = (
            figures::caller(message, kind),
            figures::method(message, asked),
        );
        match (caller, method, kind) {
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

fn seconds(micros: u64) -> Value {
    (micros as f64 / 1e6).into()
}

fn count(counts: &mut NameCounts, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}
