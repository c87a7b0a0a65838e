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

use super::active_run::{ActiveRun, Entry, Next};
use super::stay::Stay;
use crate::agent_connect::fold::Fold;
use crate::agent_connect::record::{Outcome, Run};
use crate::agent_connect::run_request::Modes;
use crate::agent_connect::uuid::Uuid;

/// Time between two events with all messages.
const PACE: Duration = Duration::from_millis(100);
/// A keep-alive comment without the usual empty line, which the SDK of Agent Connect takes for an
/// event.
const SIGN: &[u8] = b":\n";
/// Events that may be queued for writing.
const WAITING: usize = 16;

/// A client that streams a run.
struct Follower {
    live: Arc<ActiveRun>,
    modes: Modes,
    tx: mpsc::Sender<Bytes>,
    /// The number of the next log entry to send.
    at: u64,
    fold: Fold,
    /// There are messages that were not sent yet.
    unsaid: bool,
    /// The next values are not sent before.
    due: Instant,
}

/// A client that streams or waits for a run. If it is dropped before `release`, its run, if it has
/// one, is cancelled.
pub(super) struct Tied(pub(super) Option<Arc<ActiveRun>>);

/// Streams the events of a run that has not ended, after the one with the id `last`.
pub(super) fn follow(
    live: Arc<ActiveRun>,
    modes: Modes,
    last: Option<&str>,
    mut tied: Tied,
    stay: Stay,
) -> mpsc::Receiver<Bytes> {
    let (tx, rx) = mpsc::channel(WAITING);
    let at = last
        .and_then(|id| number(id, live.id))
        .unwrap_or_else(|| live.start());
    let mut follower = Follower {
        modes,
        tx,
        at: 0,
        fold: Fold::default(),
        unsaid: false,
        due: Instant::now(),
        live,
    };
    tokio::spawn(async move {
        // Values include the messages before the first event.
        while follower.at < at
            && let Next::Entry(entry) = follower.live.next(follower.at)
        {
            if let Entry::Update(update) = entry {
                follower.fold.hear(&update);
            }
            follower.at += 1;
        }
        follower.at = at;
        let told = tokio::select! {
            told = follower.run(stay.sign_of_life) => told,
            // The client's access has ended; the stream is closed.
            () = stay.over() => None,
        };
        if told.is_some() {
            tied.release();
        }
    });
    rx
}

/// The only event of a run that has ended.
pub(super) fn last(run: &Run) -> mpsc::Receiver<Bytes> {
    let (tx, rx) = mpsc::channel(1);
    // The channel has room for one.
    let _ = tx.try_send(event(&format!("{}-0", run.id), &ending(run)));
    rx
}

impl Tied {
    /// The client has received the end; the run is not cancelled.
    pub(super) fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Tied {
    fn drop(&mut self) {
        if let Some(live) = self.0.take() {
            live.cancel.cancel();
        }
    }
}

impl Follower {
    /// Sends all events up to the end or the next question; `None` when the client has
    /// disconnected.
    async fn run(&mut self, sign_of_life: Duration) -> Option<()> {
        let sign_of_life = sign_of_life.max(Duration::from_millis(10));
        let mut news = self.live.news.subscribe();
        let mut sign = Instant::now() + sign_of_life;
        if self.modes.custom {
            self.due += PACE;
        }
        self.tx.send(Bytes::from_static(SIGN)).await.ok()?;
        loop {
            loop {
                match self.live.next(self.at) {
                    Next::Nothing => break,
                    Next::Lost => {
                        tracing::warn!(
                            "a client reads the events of a run too slowly; its stream is closed"
                        );
                        return Some(());
                    }
                    Next::Over(run) => {
                        let id = format!("{}-{}", run.id, self.at + 1);
                        self.tx.send(event(&id, &ending(&run))).await.ok()?;
                        return Some(());
                    }
                    Next::Entry(entry) => {
                        self.at += 1;
                        if self.tell(entry).await? {
                            return Some(());
                        }
                    }
                }
            }
            self.say_values().await?;
            let due = if self.unsaid {
                self.due.min(sign)
            } else {
                sign
            };
            tokio::select! {
                told = news.changed() => told.ok()?,
                () = self.tx.closed() => return None,
                () = sleep_until(due) => {
                    if due == sign {
                        sign = Instant::now() + sign_of_life;
                        self.tx.send(Bytes::from_static(SIGN)).await.ok()?;
                    }
                }
            }
        }
    }

    /// Sends one entry; tells whether it is the last.
    async fn tell(&mut self, entry: Entry) -> Option<bool> {
        let run = self.live.id.to_string();
        let id = format!("{run}-{}", self.at);
        match entry {
            Entry::Update(update) => {
                let words = self.fold.messages().len();
                self.fold.hear(&update);
                if update["sessionUpdate"] == "agent_message_chunk"
                    && self.fold.messages().len() >= words
                {
                    self.unsaid = true;
                }
                if self.modes.custom {
                    let data = json!({ "type": "custom", "run_id": run, "status": "pending", "update": *update });
                    self.tx.send(event(&id, &data)).await.ok()?;
                }
                if self.due <= Instant::now() {
                    self.say_values().await?;
                }
                Some(false)
            }
            // An interrupt that was already answered is skipped.
            Entry::Interrupt(_) if self.at <= self.live.start() => Some(false),
            Entry::Interrupt(interrupt) => {
                self.due = Instant::now();
                self.say_values().await?;
                let data = json!({ "type": "interrupt", "run_id": run, "status": "interrupted", "interrupt": *interrupt });
                self.tx.send(event(&id, &data)).await.ok()?;
                Some(true)
            }
        }
    }

    /// Sends all messages, if there are new ones and the interval has passed.
    async fn say_values(&mut self) -> Option<()> {
        if !self.unsaid || !self.modes.values || self.due > Instant::now() {
            return Some(());
        }
        self.unsaid = false;
        self.due = Instant::now() + PACE;
        let run = self.live.id.to_string();
        let messages = self.fold.messages();
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
            .send(event(&format!("{run}-{}v", self.at), &data))
            .await
            .ok()
    }
}

/// The data of a run's last event.
fn ending(run: &Run) -> Value {
    let mut data = run.output();
    match &run.outcome {
        Some(Outcome::Result { .. }) => data["type"] = json!("values"),
        Some(_) => {}
        None => data = json!({ "type": "values", "values": {} }),
    }
    data["run_id"] = json!(run.id.to_string());
    data["status"] = json!(run.status.word());
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
