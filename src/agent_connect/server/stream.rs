//! A run's events, as server-sent events.
//!
//! An event's id is the run's id and the number of the agent's update before it, so a client that
//! reconnects with `Last-Event-ID` continues where it was. `active_run` keeps the events.
//!
//! # Decisions
//!
//! **Values are sent at most every 100 ms**, because each time all messages so far are sent. The
//! first are sent at once, except to a client that gets each update anyway.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::DropGuard;
use uuid::Uuid;

use super::active_run::{ActiveRun, LogEntry, LogRead};
use super::permit::AccessPermit;
use crate::agent_connect::api::record::{RunOutcome, RunRecord};
use crate::agent_connect::api::run_request::StreamModes;
use crate::agent_connect::api::turn_output::TurnOutput;

/// Time between two events with all messages.
const VALUES_INTERVAL: Duration = Duration::from_millis(100);
/// A keep-alive comment without the usual empty line, which the SDK of Agent Connect takes for an
/// event.
const KEEPALIVE: &[u8] = b":\n";
/// Events that may be queued for writing.
const QUEUE_LEN: usize = 16;

/// A client that streams a run.
struct Follower {
    live: Arc<ActiveRun>,
    modes: StreamModes,
    tx: mpsc::Sender<Bytes>,
    /// The number of the next log entry to send.
    position: u64,
    output: TurnOutput,
    /// There are messages that were not sent yet.
    has_new_values: bool,
    /// The next values are not sent before.
    due: Instant,
}

/// Streams the events of a run that has not ended, after the one with the id `last`. If the client
/// disconnects before the end, `guard` cancels the run.
pub(super) fn follow(
    live: Arc<ActiveRun>,
    modes: StreamModes,
    last: Option<&str>,
    guard: Option<DropGuard>,
    permit: AccessPermit,
) -> mpsc::Receiver<Bytes> {
    let (tx, rx) = mpsc::channel(QUEUE_LEN);
    let start = last
        .and_then(|id| number(id, live.id))
        .unwrap_or_else(|| live.log_start());
    let mut follower = Follower {
        modes,
        tx,
        position: 0,
        output: TurnOutput::default(),
        has_new_values: false,
        due: Instant::now(),
        live,
    };
    tokio::spawn(async move {
        // Values include the messages before the first event.
        while follower.position < start
            && let LogRead::Entry(entry) = follower.live.read_log(follower.position)
        {
            if let LogEntry::Update(update) = entry {
                follower.output.apply(&update);
            }
            follower.position += 1;
        }
        follower.position = start;
        let done = tokio::select! {
            done = follower.run(permit.keepalive) => done,
            // The client's access has ended; the stream is closed.
            () = permit.expired() => None,
        };
        if done.is_some() {
            guard.map(DropGuard::disarm);
        }
    });
    rx
}

/// The only event of a run that has ended.
pub(super) fn final_event(run: &RunRecord) -> mpsc::Receiver<Bytes> {
    let (tx, rx) = mpsc::channel(1);
    // The channel has room for one.
    let _ = tx.try_send(event(&format!("{}-0", run.id), &final_data(run)));
    rx
}

impl Follower {
    /// Sends all events up to the end or the next question; `None` when the client has
    /// disconnected.
    async fn run(&mut self, keepalive: Duration) -> Option<()> {
        let keepalive = keepalive.max(Duration::from_millis(10));
        let mut changes = self.live.changes.subscribe();
        let mut next_keepalive = Instant::now() + keepalive;
        if self.modes.custom {
            self.due += VALUES_INTERVAL;
        }
        self.tx.send(Bytes::from_static(KEEPALIVE)).await.ok()?;
        loop {
            loop {
                match self.live.read_log(self.position) {
                    LogRead::Pending => break,
                    LogRead::Lost => {
                        tracing::warn!(
                            "a client reads the events of a run too slowly; its stream is closed"
                        );
                        return Some(());
                    }
                    LogRead::Ended(run) => {
                        let id = format!("{}-{}", run.id, self.position + 1);
                        self.tx.send(event(&id, &final_data(&run))).await.ok()?;
                        return Some(());
                    }
                    LogRead::Entry(entry) => {
                        self.position += 1;
                        if self.send_entry(entry).await? {
                            return Some(());
                        }
                    }
                }
            }
            self.send_values().await?;
            let due = if self.has_new_values {
                self.due.min(next_keepalive)
            } else {
                next_keepalive
            };
            tokio::select! {
                changed = changes.changed() => changed.ok()?,
                () = self.tx.closed() => return None,
                () = sleep_until(due) => {
                    if due == next_keepalive {
                        next_keepalive = Instant::now() + keepalive;
                        self.tx.send(Bytes::from_static(KEEPALIVE)).await.ok()?;
                    }
                }
            }
        }
    }

    /// Sends one entry; returns whether it is the last.
    async fn send_entry(&mut self, entry: LogEntry) -> Option<bool> {
        let run = self.live.id.to_string();
        let id = format!("{run}-{}", self.position);
        match entry {
            LogEntry::Update(update) => {
                self.output.apply(&update);
                self.has_new_values |= update["sessionUpdate"] == "agent_message_chunk";
                if self.modes.custom {
                    let data = json!({ "type": "custom", "run_id": run, "status": "pending", "update": *update });
                    self.tx.send(event(&id, &data)).await.ok()?;
                }
                if self.due <= Instant::now() {
                    self.send_values().await?;
                }
                Some(false)
            }
            // An interrupt that was already answered is skipped.
            LogEntry::Interrupt(_) if self.position <= self.live.log_start() => Some(false),
            LogEntry::Interrupt(interrupt) => {
                self.due = Instant::now();
                self.send_values().await?;
                let data = json!({ "type": "interrupt", "run_id": run, "status": "interrupted", "interrupt": *interrupt });
                self.tx.send(event(&id, &data)).await.ok()?;
                Some(true)
            }
        }
    }

    /// Sends all messages, if there are new ones and the interval has passed.
    async fn send_values(&mut self) -> Option<()> {
        if !self.has_new_values || !self.modes.values || self.due > Instant::now() {
            return Some(());
        }
        self.has_new_values = false;
        self.due = Instant::now() + VALUES_INTERVAL;
        let run = self.live.id.to_string();
        let messages = self.output.messages();
        let mut values = json!({});
        if self.live.thread.is_none() {
            values["messages"] = json!(messages);
        }
        let data = json!({
            "type": "values",
            "run_id": run,
            "status": "pending",
            "values": values,
            "messages": messages,
        });
        self.tx
            .send(event(&format!("{run}-{}v", self.position), &data))
            .await
            .ok()
    }
}

/// The data of a run's last event.
fn final_data(run: &RunRecord) -> Value {
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
    let mut data = data.to_string();
    for (odd, escaped) in [
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
        ('\u{85}', "\\u0085"),
    ] {
        if data.contains(odd) {
            data = data.replace(odd, escaped);
        }
    }
    Bytes::from(format!("id: {id}\nevent: agent_event\ndata: {data}\n\n"))
}

/// The number in an event's id, if it belongs to this run.
fn number(id: &str, run: Uuid) -> Option<u64> {
    let number = id.strip_prefix(&run.to_string())?.strip_prefix('-')?;
    number.trim_end_matches('v').parse().ok()
}
