//! Runs and threads, as stored and as shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::api_error::ApiError;
use super::page::ResultPage;
use super::timestamp::Timestamp;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The run has not ended.
    Pending,
    /// The run failed.
    Error,
    /// The agent's turn has ended, for any stop reason.
    Success,
    /// The run exceeded its time limit.
    Timeout,
    /// The run waits for the answer to an interrupt.
    Interrupted,
}

/// The status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatus {
    /// None of its runs is active.
    Idle,
    /// A run is active.
    Busy,
    /// A run waits for the answer to an interrupt.
    Interrupted,
    /// Its last run failed.
    Error,
}

/// The outcome of a run; serialised, the form in which it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunOutcome {
    /// The turn has ended.
    Result {
        /// The stop reason, and what else the run shows.
        values: Map<String, Value>,
        /// The agent's messages.
        messages: Vec<Value>,
        /// The text alone, for clients that sent plain text.
        text: Option<String>,
    },
    /// The run waits for the answer to a question.
    Interrupt {
        /// The interrupt's type.
        #[serde(rename = "interrupt")]
        name: String,
        /// The question.
        payload: Value,
    },
    /// The run failed.
    Error(RunFailure),
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// A JSON-RPC error code.
    #[serde(rename = "errcode")]
    pub code: i64,
    /// What happened.
    #[serde(rename = "description")]
    pub message: String,
}

/// A run; serialised, the form in which both generations show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// Its id.
    #[serde(rename = "run_id")]
    pub id: Uuid,
    /// The agent it runs on.
    #[serde(rename = "agent_id")]
    pub agent: Uuid,
    /// Its thread, unless the thread was created for this run alone.
    #[serde(rename = "thread_id", skip_serializing_if = "Option::is_none")]
    pub thread: Option<Uuid>,
    /// Its status.
    pub status: RunStatus,
    /// When it was requested.
    #[serde(rename = "created_at")]
    pub created: Timestamp,
    /// When its status changed last.
    #[serde(rename = "updated_at")]
    pub updated: Timestamp,
    /// The body of the request that created it.
    pub creation: Value,
    /// Its outcome; `None` while it is pending.
    #[serde(skip)]
    pub outcome: Option<RunOutcome>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRecord {
    /// Its id.
    pub id: Uuid,
    /// The agent that owns the session, once there is one.
    pub agent: Option<Uuid>,
    /// The ACP session.
    pub session: Option<String>,
    /// When it was created.
    pub created: Timestamp,
    /// When it was last changed.
    pub updated: Timestamp,
    /// The metadata that the client gave.
    pub metadata: Map<String, Value>,
    /// How its session was created: `cwd` and `mcp_servers`.
    pub setup: Value,
}

/// One finished run of a thread: what it added to the thread.
#[derive(Clone, Debug, PartialEq)]
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

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl RunStatus {
    /// Whether the status is final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Interrupted)
    }
}

impl RunFailure {
    /// A failure with this JSON-RPC code.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}

impl From<ApiError> for RunFailure {
    fn from(fault: ApiError) -> Self {
        Self::new(-32603, fault.message)
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

impl RunRecord {
    /// Its output in the form of 0.2.3; `null` while it is pending.
    #[must_use]
    pub fn output(&self) -> Value {
        match &self.outcome {
            None => Value::Null,
            Some(RunOutcome::Result {
                values, messages, ..
            }) => {
                let mut output = json!({ "type": "result", "values": values });
                if !messages.is_empty() {
                    output["messages"] = json!(messages);
                }
                output
            }
            Some(RunOutcome::Interrupt { name, payload }) => {
                json!({ "type": "interrupt", "interrupt": { name: payload } })
            }
            Some(RunOutcome::Error(RunFailure { code, message })) => json!({
                "type": "error",
                "run_id": self.id,
                "errcode": code,
                "description": message,
            }),
        }
    }

    /// Its output in the form of the older generations.
    #[must_use]
    pub fn old_output(&self) -> Value {
        match &self.outcome {
            Some(RunOutcome::Result {
                values,
                messages,
                text,
            }) => {
                let mut result = values.clone();
                if !messages.is_empty() {
                    result.insert("messages".to_owned(), json!(messages));
                }
                if let Some(text) = text {
                    result.insert("message".to_owned(), json!(text));
                }
                json!({
                    "type": "result",
                    "run_id": self.id,
                    "status": self.status,
                    "result": result,
                })
            }
            Some(RunOutcome::Interrupt { name, payload }) => json!({
                "type": "interrupt",
                "interrupt_type": name,
                "interrupt_payload": payload,
                "interrupt": { name: payload },
            }),
            _ => self.output(),
        }
    }
}

impl ThreadRecord {
    /// The thread as shown, with its status and the messages of these turns.
    #[must_use]
    pub fn to_json(&self, status: ThreadStatus, turns: &[TurnRecord]) -> Value {
        let mut metadata = self.metadata.clone();
        if let Some(session) = &self.session {
            metadata.insert("acp_session_id".to_owned(), json!(session));
        }
        let mut shown = json!({
            "thread_id": self.id,
            "created_at": self.created,
            "updated_at": self.updated,
            "metadata": metadata,
            "status": status,
        });
        if let Some(last) = turns.last() {
            shown["values"] = json!(last.values);
            shown["messages"] = json!(messages(turns));
        }
        shown
    }
}

/// The state of a thread after these turns, in the form of the older generation.
#[must_use]
pub fn state(turns: &[TurnRecord]) -> Value {
    let values = turns.last().map(|turn| turn.values.clone());
    let mut state = values.unwrap_or_default();
    state.insert("messages".to_owned(), json!(messages(turns)));
    Value::Object(state)
}

/// The states of a thread: a page of them, the latest first, only those before the checkpoint
/// `before`. The id of a checkpoint is the id of the run that led to it.
#[must_use]
pub fn history(turns: &[TurnRecord], page: ResultPage, before: Option<&str>) -> Vec<Value> {
    let named = |turn: &TurnRecord| before.is_some_and(|before| turn.run.to_string() == before);
    let end = turns.iter().position(named).unwrap_or(turns.len());
    let state = |count: usize| {
        let turn = &turns[count - 1];
        json!({
            "checkpoint": { "checkpoint_id": turn.run },
            "values": turn.values,
            "messages": messages(&turns[..count]),
            "metadata": { "created_at": turn.ended },
        })
    };
    page.slice((1..=end).rev()).map(state).collect()
}

fn messages(turns: &[TurnRecord]) -> Vec<&Value> {
    turns.iter().flat_map(|turn| &turn.messages).collect()
}
