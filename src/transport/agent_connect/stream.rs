//! A run's events, as server-sent events.
//!
//! An event's id is the run's and the number of the agent's update behind which it stands, so a
//! client that comes back with `Last-Event-ID` goes on where it was. Not here: what is kept for
//! those (see `active_run`).
//!
//! # Why
//!
//! **Values are told at most every 100 ms**, for each time all that was said so far is told. The
//! first is told at once; who hears each update anyway loses nothing by waiting for the first as
//! well.

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

/// Time between two tellings of all that was said.
const PACE: Duration = Duration::from_millis(100);
/// A sign of life. The SDK of Agent Connect takes the empty line behind a comment for an event, so
/// there is none.
const SIGN: &[u8] = b":\n";
/// Events that may wait to be written.
const WAITING: usize = 16;

/// Somebody who follows a run.
struct Follower {
    live: Arc<ActiveRun>,
    modes: Modes,
    tx: mpsc::Sender<Bytes>,
    /// It knows all before this number.
    at: u64,
    fold: Fold,
    /// Something was said that was not told yet.
    unsaid: bool,
    /// Not before then.
    due: Instant,
}

/// A client that follows or waits for a run. Dropped before it is released, the run is cancelled, if
/// there is one: it was tied to that client.
pub(super) struct Tied(pub(super) Option<Arc<ActiveRun>>);

/// The events of a run that goes on, behind the one with this id.
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
        // What was said before is part of all that was said.
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
            // The stream is cut.
            () = stay.over() => None,
        };
        if told.is_some() {
            tied.release();
        }
    });
    rx
}

/// The only event of a run that is over.
pub(super) fn last(run: &Run) -> mpsc::Receiver<Bytes> {
    let (tx, rx) = mpsc::channel(1);
    // There is room for one.
    let _ = tx.try_send(event(&format!("{}-0", run.id), &ending(run)));
    rx
}

impl Tied {
    /// The run need not be cancelled: the client has what it came for.
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
    /// Tells everything up to the end, or the next question; `None` when nobody follows any more.
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
                            "somebody who follows a run is too slow for it; its stream is ended"
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

    /// Tells one entry; whether it is the last.
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
            // One that is answered already is of no use to anybody.
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

    /// Tells all that was said, if something of it is new and it is time.
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

/// The last event of a run.
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

/// An event. Characters that some clients take for the end of a line are escaped; outside of strings
/// JSON has none of them.
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

/// The number in an event's id, when it is of this run.
fn number(id: &str, run: Uuid) -> Option<u64> {
    let number = id.strip_prefix(&run.to_string())?.strip_prefix('-')?;
    number.trim_end_matches('v').parse().ok()
}
