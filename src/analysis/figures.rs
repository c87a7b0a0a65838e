//! The messages of a conversation by method, and durations: from requests to answers, of turns, to the
//! first update of each turn, and of the slowest tool calls.
//!
//! They are collected event by event from one view of a recording, so that it can grow.

#![warn(clippy::indexing_slicing)]

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use jsonrpc::{Kind, Side};
use recording::{Exchange, Message, RecordedEvent};

/// Maximum number of tool calls without an end that are kept.
const MAX_OPEN: usize = 10_000;

/// Number of the slowest tool calls that are kept.
const SLOWEST: usize = 20;

/// Maximum characters of a tool call's title.
const TITLE: usize = 120;

/// Durations in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Durations(Vec<u64>);

/// The figures of a conversation so far.
#[derive(Debug, Default)]
pub struct Figures {
    /// By the calling side and the method.
    pub methods: BTreeMap<(&'static str, String), MethodFigures>,
    /// Of turns.
    pub turns: Durations,
    /// How long requests for permission waited.
    pub permission: Durations,
    /// From prompts to first updates.
    pub first_updates: Durations,
    /// The slowest tool calls that have ended, the slowest first.
    pub slowest: Vec<ToolCall>,
    /// Prompts without an update so far, by session: the event and its time.
    open_prompts: BTreeMap<String, (u64, u64)>,
    /// Those that have not ended, by session and id, with the times at which they began.
    open_tools: HashMap<(String, String), (u64, ToolCall)>,
}

/// The messages of a method.
#[derive(Clone, Debug, Default)]
pub struct MethodFigures {
    /// The number of requests.
    pub requests: u64,
    /// The number of notifications.
    pub notifications: u64,
    /// The number of answers that are errors.
    pub errors: u64,
    /// From requests to their answers.
    pub took: Durations,
    /// The bytes of all of them.
    pub bytes: u64,
}

/// A tool call.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolCall {
    /// Its first event.
    pub n: u64,
    /// Its id.
    pub id: String,
    /// Its last title.
    pub title: String,
    /// From its first event to its end.
    pub lasted: u64,
}

/// What is read of a `session/update`.
#[derive(Deserialize)]
struct Notification<'a> {
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    update: Update<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow, default)]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
}

impl MethodFigures {
    /// The number of requests without an answer.
    #[must_use]
    pub const fn unanswered(&self) -> u64 {
        self.requests.saturating_sub(self.took.count() as u64)
    }
}

impl Durations {
    /// Adds one.
    pub fn push(&mut self, micros: u64) {
        self.0.push(micros);
    }

    /// The number of durations.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, one| sum.saturating_add(*one))
    }

    /// The median, the 90th and the 99th percentile, by nearest rank, and the maximum.
    #[must_use]
    pub fn percentiles(&self) -> [Option<u64>; 4] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        [50, 90, 99, 100].map(|percent| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.checked_sub(1)?).copied()
        })
    }

    /// Their number and the percentiles, each as `shown`.
    #[must_use]
    pub fn json(&self, shown: fn(u64) -> Value) -> Value {
        let [p50, p90, p99, max] = self.percentiles().map(|micros| micros.map(shown));
        json!({"count": self.count(), "p50": p50, "p90": p90, "p99": p99, "max": max})
    }
}

impl Figures {
    /// Adds a message of the view; an answer with the exchange it belongs to. If it is the first
    /// update of a turn, returns the event of its prompt, and the time between.
    pub fn add(
        &mut self,
        event: &RecordedEvent,
        message: &Message,
        asked: Option<&Exchange>,
    ) -> Option<(u64, u64)> {
        let kind = message.kind?;
        let caller = caller(message, kind);
        let method = method(message, asked);
        let session = asked
            .and_then(|asked| asked.session.as_deref())
            .or(message.session.as_deref())
            .unwrap_or_default();
        let key = (caller.name(), method.to_owned());
        let of_method = self.methods.entry(key).or_default();
        of_method.bytes += message.body.len();
        match kind {
            Kind::Request => of_method.requests += 1,
            Kind::Notification => of_method.notifications += 1,
            Kind::Result => {}
            Kind::Error => of_method.errors += 1,
        }
        if kind.is_answer() {
            let took = event.t.saturating_sub(asked?.requested_at);
            of_method.took.push(took);
            match (caller, method) {
                (Side::Client, "session/prompt") => {
                    self.open_prompts.remove(session);
                    self.turns.push(took);
                }
                (Side::Agent, "session/request_permission") => self.permission.push(took),
                _ => {}
            }
            return None;
        }
        match (caller, method) {
            (Side::Client, "session/prompt") => {
                let prompt = (event.n, event.t);
                self.open_prompts.insert(session.to_owned(), prompt);
                None
            }
            (Side::Agent, "session/update") => self.update(event, message, session),
            _ => None,
        }
    }

    fn update(
        &mut self,
        event: &RecordedEvent,
        message: &Message,
        session: &str,
    ) -> Option<(u64, u64)> {
        let kind = update_kind(message)?;
        let is_tool = kind.starts_with(b"tool_call");
        if is_tool && let Ok(read) = serde_json::from_slice(message.body.bytes()?) {
            let Notification { params } = read;
            self.tool_call(event, session, &params.update);
        }
        if !(is_tool || kind.ends_with(b"_chunk") || kind == b"plan") {
            return None;
        }
        let (n, t) = self.open_prompts.remove(session)?;
        let first = event.t.saturating_sub(t);
        self.first_updates.push(first);
        Some((n, first))
    }

    fn tool_call(&mut self, event: &RecordedEvent, session: &str, update: &Update<'_>) {
        let Some(id) = update.tool_call_id.as_deref() else {
            return;
        };
        let status = update.status.as_deref();
        let has_ended = matches!(status, Some("completed" | "failed" | "cancelled"));
        let key = (session.to_owned(), id.to_owned());
        if !has_ended && self.open_tools.len() < MAX_OPEN {
            let call = ToolCall {
                n: event.n,
                id: id.chars().take(TITLE).collect(),
                ..ToolCall::default()
            };
            let first = || (event.t, call);
            self.open_tools.entry(key.clone()).or_insert_with(first);
        }
        let title = update.title.as_deref().filter(|title| !title.is_empty());
        if let (Some((_, call)), Some(title)) = (self.open_tools.get_mut(&key), title) {
            call.title = title.chars().take(TITLE).collect();
        }
        if !has_ended {
            return;
        }
        let Some((began, mut call)) = self.open_tools.remove(&key) else {
            return;
        };
        call.lasted = event.t.saturating_sub(began);
        let place = (self.slowest).partition_point(|known| known.lasted >= call.lasted);
        self.slowest.insert(place, call);
        self.slowest.truncate(SLOWEST);
    }
}

/// The side that sent the request, or the notification.
pub fn caller(message: &Message, kind: Kind) -> Side {
    match kind.is_answer() {
        true => message.to,
        false => message.to.other(),
    }
}

/// The method of a message; of an answer, that of its request in the view.
pub fn method<'a>(message: &'a Message, asked: Option<&'a Exchange>) -> &'a str {
    let asked = asked.map(|asked| asked.method.as_str());
    let asked = asked.filter(|name| !name.is_empty());
    asked.or(message.method.as_deref()).unwrap_or("?")
}

/// The kind of a `session/update`; `None` for other messages.
///
/// The name cannot occur within a string, where its quotes would be escaped.
pub fn update_kind(message: &Message) -> Option<&[u8]> {
    const NAME: &[u8] = b"\"sessionUpdate\"";
    if message.method.as_deref() != Some("session/update") {
        return None;
    }
    let body = message.body.bytes()?;
    let at = memchr::memmem::find(body, NAME)?;
    let rest = body.get(at + NAME.len()..)?.trim_ascii_start();
    let rest = rest.strip_prefix(b":")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"")?;
    rest.get(..memchr::memchr(b'"', rest)?)
}
