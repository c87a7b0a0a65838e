//! Threads and their turns, as stored and as shown, and the requests that create or change them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::page::{MAX_BYTES, ResultPage};
use super::run::{RunStatus, Timestamp};

/// The status of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatus {
    /// None of its runs is active.
    #[default]
    Idle,
    /// A run is active.
    Busy,
    /// A run waits for the answer to an interrupt.
    Interrupted,
    /// Its last run failed.
    Error,
}

/// A thread; serialised, the form in which it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its id.
    pub id: Uuid,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The metadata that the client gave.
    pub metadata: Map<String, Value>,
    /// The ACP session, once there is one.
    pub session: Option<String>,
    /// The agent that owns the session.
    pub agent: Option<Uuid>,
    /// How its session was created: `cwd` and `mcp_servers`.
    pub setup: Value,
    /// Its status, by its runs.
    #[serde(skip)]
    pub status: ThreadStatus,
    /// The values of its last turn.
    #[serde(skip)]
    pub values: Option<Map<String, Value>>,
    /// The messages of all its turns.
    #[serde(skip)]
    pub messages: Vec<Value>,
}

/// One finished run of a thread: what it added to the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The run.
    pub run: Uuid,
    /// When it ended.
    pub ended: Timestamp,
    /// The stop reason, and what the agent did.
    pub values: Map<String, Value>,
    /// The messages of the client and the agent.
    pub messages: Vec<Value>,
}

/// A request to create a thread.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ThreadCreate {
    /// Its id, if the client chooses it.
    #[serde(rename = "thread_id")]
    pub id: Option<Uuid>,
    /// The client's metadata.
    pub metadata: Map<String, Value>,
    /// What happens when a thread of this id exists.
    pub if_exists: IfExists,
}

/// What happens when a thread of the requested id exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfExists {
    /// The request is rejected with 409.
    #[default]
    Raise,
    /// The thread is shown.
    DoNothing,
}

/// A request to change a thread.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ThreadPatch {
    /// Members of the metadata to set.
    pub metadata: Map<String, Value>,
    /// The state that is changed; only checked.
    pub checkpoint: Map<String, Value>,
    /// Cannot be changed.
    pub values: Option<Value>,
    /// Cannot be changed.
    pub messages: Option<Value>,
}

impl Thread {
    /// The form in which it is shown: its session is part of the metadata.
    #[must_use]
    pub fn shown(&self) -> Value {
        let mut metadata = self.metadata.clone();
        if let Some(session) = &self.session {
            metadata.insert("acp_session_id".to_owned(), json!(session));
        }
        let mut shown = json!({
            "thread_id": self.id,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "metadata": metadata,
            "status": self.status,
        });
        if let Some(values) = &self.values {
            shown["values"] = json!(values);
        }
        if !self.messages.is_empty() {
            shown["messages"] = json!(self.messages);
        }
        shown
    }
}

impl ThreadStatus {
    /// The status of a thread whose most important run has this status.
    #[must_use]
    pub const fn after(run: Option<RunStatus>) -> Self {
        match run {
            Some(RunStatus::Pending) => Self::Busy,
            Some(RunStatus::Interrupted) => Self::Interrupted,
            Some(RunStatus::Error | RunStatus::Timeout) => Self::Error,
            Some(RunStatus::Success) | None => Self::Idle,
        }
    }
}

/// The states of a thread after each of these turns: a page of them, the latest first, only those
/// before the checkpoint `before`, and at most [`MAX_BYTES`] of them. The id of a checkpoint is the id of the run that led to it.
#[must_use]
pub fn history(turns: &[TurnRecord], page: ResultPage, before: Option<&str>) -> Vec<Value> {
    let named = |turn: &TurnRecord| before.is_some_and(|before| turn.run.to_string() == before);
    let end = turns.iter().position(named).unwrap_or(turns.len());
    let state = |count: usize| {
        let turn = &turns[count - 1];
        let messages = turns[..count].iter().flat_map(|turn| &turn.messages);
        json!({
            "checkpoint": { "checkpoint_id": turn.run },
            "values": turn.values,
            "messages": messages.collect::<Vec<_>>(),
            "metadata": { "created_at": turn.ended },
        })
    };
    let mut left = MAX_BYTES;
    let states = page.slice((1..=end).rev()).map(state).enumerate();
    let sent = states.take_while(|(number, state)| {
        let len = state.to_string().len();
        let fits = len <= left;
        left = left.saturating_sub(len);
        fits || *number == 0
    });
    sent.map(|(_, state)| state).collect()
}
