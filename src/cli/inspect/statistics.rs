//! Statistics of a conversation.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::jsonrpc::{Kind, Side};
use crate::recording::{EventKind, Exchanges, Message, RecordedEvent, View, parse_json};

/// Statistics of a conversation.
#[derive(Debug, Default, Serialize)]
pub(super) struct Statistics {
    #[serde(serialize_with = "seconds")]
    pub(super) lasted: u64,
    /// What the client sent, and what the agent sent.
    pub(super) client: Traffic,
    pub(super) agent: Traffic,
    pub(super) turns: Durations,
    /// Stop reasons of turns.
    pub(super) stop_reasons: BTreeMap<String, u64>,
    pub(super) first_update: Durations,
    pub(super) permission: Durations,
    /// By the calling side, and the method.
    #[serde(serialize_with = "method_list")]
    pub(super) methods: BTreeMap<(&'static str, String), Method>,
    /// Kinds of `session/update`.
    pub(super) updates: BTreeMap<String, u64>,
    pub(super) rules: BTreeMap<String, u64>,
    pub(super) notes: BTreeMap<String, u64>,
    pub(super) links: BTreeMap<String, u64>,
    pub(super) noise: u64,
    pub(super) stderr_bytes: u64,
    pub(super) missing_events: u64,
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
pub(super) struct Traffic {
    pub(super) frames: u64,
    pub(super) bytes: u64,
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
    bytes: u64,
}

/// Durations in microseconds.
#[derive(Debug, Default)]
pub(super) struct Durations(Vec<u64>);

impl Method {
    pub(super) const fn unanswered(&self) -> u64 {
        self.requests.saturating_sub(self.times.count() as u64)
    }
}

impl Durations {
    /// The median, the 99th percentile and the maximum, by nearest rank.
    pub(super) fn percentiles(&self) -> [Option<u64>; 3] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        [50, 99, 100].map(|percent| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.checked_sub(1)?).copied()
        })
    }

    pub(super) const fn count(&self) -> usize {
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
    /// Of the messages in a view.
    pub(super) fn of(view: View) -> Self {
        Self {
            view,
            ..Self::default()
        }
    }

    /// Counts what does not depend on the view: exchanges and applied rules. They may be recorded
    /// with messages that the relay sent, which are in no view of both sides.
    pub(super) fn count_rules(&mut self, event: &RecordedEvent) {
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

    pub(super) fn count(&mut self, event: &RecordedEvent) {
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
