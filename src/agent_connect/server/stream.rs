//! A run's events, as server-sent events.
//!
//! An event's id is the run's id and the number of the agent's updates before it, so a client that
//! reconnects with `Last-Event-ID` continues where it was. `run` keeps the updates.
//!
//! # Decisions
//!
//! **Values are sent at most every 100 ms**, because each time all messages so far are sent. The
//! first are sent at once, except to a client that gets each update anyway.
//!
//! **Events are written here.** Those of `axum::response::sse` have a keep-alive that Agent Connect's
//! SDK takes for an event.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{once, unfold};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::DropGuard;
use uuid::Uuid;

use super::call::Call;
use super::run::{Next, Phase, Run};
use crate::api::content::TurnOutput;
use crate::api::run::{RunOutcome, RunRecord};
use transport::BoxFuture;
use transport::http::port::refusal;

/// Time between two events with all messages.
const VALUES_INTERVAL: Duration = Duration::from_millis(100);
/// A keep-alive comment without the usual empty line, which the SDK of Agent Connect takes for an
/// event.
const KEEPALIVE: Bytes = Bytes::from_static(b":\n");

/// A client that streams a run.
struct Follower {
    run: Arc<Run>,
    changes: watch::Receiver<Phase>,
    /// Ready when the client's access has ended.
    expired: BoxFuture<'static, ()>,
    /// Interval between keep-alive comments.
    keepalive: Duration,
    /// Cancels the run if the client disconnects before the end.
    guard: Option<DropGuard>,
    /// Events that were not sent yet.
    events: VecDeque<Bytes>,
    is_done: bool,
    /// The number of updates so far.
    position: u64,
    output: TurnOutput,
    /// There are messages that were not sent yet.
    has_new_values: bool,
    /// The next values are not sent before.
    due: Instant,
}

/// A response with the events of a run that has not ended, after the last one that the client has
/// received.
pub(super) fn follow(call: &Call, run: Arc<Run>, guard: Option<DropGuard>) -> Response {
    let last = call.last_event.as_deref();
    let start = last.and_then(|id| number(id, run.id));
    let start = start.unwrap_or_else(|| run.start());
    let mut output = TurnOutput::default();
    // Values include the messages before the first event.
    let mut position = 0;
    while position < start
        && let Next::Update(update) = run.next(position)
    {
        output.apply(&update);
        position += 1;
    }
    let wait = match run.request.stream_modes.custom {
        true => VALUES_INTERVAL,
        false => Duration::ZERO,
    };
    let follower = Follower {
        changes: run.changes.subscribe(),
        expired: Box::pin(call.expired()),
        keepalive: call.hub.port.limits.http_keepalive,
        guard,
        events: VecDeque::from([KEEPALIVE]),
        is_done: false,
        position: start,
        output,
        has_new_values: false,
        due: Instant::now() + wait,
        run,
    };
    refusal::events(unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((event, follower))
    }))
}

/// A response with the only event of a run that has ended.
pub(super) fn ended(run: &RunRecord) -> Response {
    let last = event(&format!("{}-0", run.id), &last_data(run));
    refusal::events(once(std::future::ready(last)))
}

impl Follower {
    /// The next event, up to the end or the next question; `None` at the end of the stream, and when
    /// the client's access has ended.
    async fn next(&mut self) -> Option<Bytes> {
        let next_keepalive = Instant::now() + self.keepalive.max(Duration::from_millis(10));
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.is_done {
                self.guard.take().map(DropGuard::disarm);
                return None;
            }
            self.changes.mark_unchanged();
            match self.run.next(self.position) {
                Next::Update(update) => self.add_update(&update),
                Next::Settled(record) => {
                    if !record.status.is_final() {
                        self.due = Instant::now();
                        self.add_values();
                    }
                    self.add("", &last_data(&record));
                    self.is_done = true;
                }
                Next::Lost => {
                    let what =
                        "a client reads the events of a run too slowly; its stream is closed";
                    tracing::warn!("{what}");
                    self.is_done = true;
                }
                Next::Pending if self.has_new_values && self.due <= Instant::now() => {
                    self.add_values();
                }
                Next::Pending => {
                    let due = match self.has_new_values {
                        true => self.due.min(next_keepalive),
                        false => next_keepalive,
                    };
                    tokio::select! {
                        changed = self.changes.changed() => changed.ok()?,
                        () = &mut self.expired => return None,
                        () = sleep_until(due) => {
                            if due == next_keepalive {
                                return Some(KEEPALIVE);
                            }
                        }
                    }
                }
            }
        }
    }

    fn add_update(&mut self, update: &Value) {
        self.position += 1;
        self.output.apply(update);
        let modes = self.run.request.stream_modes;
        self.has_new_values |= modes.values && update["sessionUpdate"] == "agent_message_chunk";
        if modes.custom {
            let (run, status) = (self.run.id, "pending");
            let data =
                json!({ "type": "custom", "run_id": run, "status": status, "update": update });
            self.add("", &data);
        }
        self.add_values();
    }

    /// Adds all messages, if there are new ones and the interval has passed.
    fn add_values(&mut self) {
        if !self.has_new_values || self.due > Instant::now() {
            return;
        }
        self.has_new_values = false;
        self.due = Instant::now() + VALUES_INTERVAL;
        let messages = self.output.messages();
        let mut values = json!({});
        if self.run.thread.is_none() {
            values["messages"] = json!(messages);
        }
        let data = json!({
            "type": "values",
            "run_id": self.run.id,
            "status": "pending",
            "values": values,
            "messages": messages,
        });
        self.add("v", &data);
    }

    fn add(&mut self, mark: &str, data: &Value) {
        let id = format!("{}-{}{mark}", self.run.id, self.position);
        self.events.push_back(event(&id, data));
    }
}

/// The data of a run's last event: its end or its interrupt.
fn last_data(run: &RunRecord) -> Value {
    let mut data = run.output();
    match &run.outcome {
        Some(RunOutcome::Result { .. }) => data["type"] = json!("values"),
        Some(_) => {}
        None => data = json!({ "type": "values", "values": {} }),
    }
    data["run_id"] = json!(run.id);
    data["status"] = json!(run.status);
    data
}

/// An event. Characters that some clients take for line ends are escaped; in JSON they occur only
/// inside strings.
fn event(id: &str, data: &Value) -> Bytes {
    let data = data.to_string().replace('\u{2028}', "\\u2028");
    let data = data
        .replace('\u{2029}', "\\u2029")
        .replace('\u{85}', "\\u0085");
    Bytes::from(format!("id: {id}\nevent: agent_event\ndata: {data}\n\n"))
}

/// The number in an event's id, if it belongs to this run.
fn number(id: &str, run: Uuid) -> Option<u64> {
    let number = id.strip_prefix(&run.to_string())?.strip_prefix('-')?;
    number.trim_end_matches('v').parse().ok()
}
