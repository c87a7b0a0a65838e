//! Statistics of a conversation.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::jsonrpc::{Kind, Side};
use crate::recording::{EventKind, Exchanges, Message, RecordedEvent, View, parse_json};

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

    pub(super) fn count(&mut self, event: &RecordedEvent) {
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
        let is_answer = message.kind.is_some_and(Kind::is_answer);
        let exchange = self.conversation.exchange_in(self.view, event.n);
        let asked = exchange.filter(|_| is_answer);
        let took = asked.map(|asked| event.t.saturating_sub(asked.requested_at));
        let request = asked.map(|asked| (asked.method.clone(), asked.session.clone()));
        let (asked_method, session) = request.unwrap_or_default();
        let Some(kind) = message.kind else {
            return;
        };
        let caller = if kind.is_answer() { message.to } else { from };
        let name = Some(asked_method).filter(|name| !name.is_empty());
        let name = name.or_else(|| message.method.clone());
        let name = name.unwrap_or_else(|| "?".to_owned());
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
        kind: Kind,
        t: u64,
        session: String,
        took: Option<u64>,
        message: &Message,
    ) {
        if kind == Kind::Request {
            self.open_prompts.insert(session, t);
            return;
        }
        self.open_prompts.remove(&session);
        self.turns.0.extend(took);
        let body = message.body.bytes().and_then(|bytes| parse_json(bytes));
        let reason = match kind {
            Kind::Error => Some("error"),
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
        if is_output && let Some(asked) = self.open_prompts.remove(session) {
            self.first_update.0.push(t.saturating_sub(asked));
        }
    }
}
