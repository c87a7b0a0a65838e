//! Runs, as stored and as shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::RpcError;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[derive(strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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
    Interrupt(Interrupt),
    /// The run failed.
    Error(RpcError),
}

/// An interrupt of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Its type.
    #[serde(rename = "interrupt")]
    pub name: String,
    /// The question.
    pub payload: Value,
    /// It came as `interrupt_type` and `interrupt_payload`, and is answered in that form.
    #[serde(skip)]
    pub wrapped: bool,
}

/// A run; serialised, the form in which it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    pub outcome: Option<RunOutcome>,
}

/// A time as RFC 3339, in UTC with microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp(String);

impl RunStatus {
    /// Whether the status is final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Interrupted)
    }
}

impl RunRecord {
    /// The form in which both generations show it.
    #[must_use]
    pub fn shown(&self) -> Value {
        let mut shown = json!(self);
        if let Some(members) = shown.as_object_mut() {
            members.shift_remove("outcome");
        }
        shown
    }

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
            Some(RunOutcome::Interrupt(Interrupt { name, payload, .. })) => {
                json!({ "type": "interrupt", "interrupt": { name: payload } })
            }
            Some(RunOutcome::Error(failure)) => {
                let mut output = json!(failure);
                output["type"] = json!("error");
                output["run_id"] = json!(self.id);
                output
            }
        }
    }

    /// Its output in the form of the older generations.
    #[must_use]
    pub fn old_output(&self) -> Value {
        let mut output = self.output();
        match &self.outcome {
            Some(RunOutcome::Result { text, .. }) => {
                let mut result = output["values"].take();
                if let Some(messages) = output.get("messages") {
                    result["messages"] = messages.clone();
                }
                if let Some(text) = text {
                    result["message"] = json!(text);
                }
                json!({ "type": "result", "run_id": self.id, "status": self.status, "result": result })
            }
            Some(RunOutcome::Interrupt(Interrupt { name, payload, .. })) => {
                output["interrupt_type"] = json!(name);
                output["interrupt_payload"] = payload.clone();
                output
            }
            _ => output,
        }
    }
}

impl Timestamp {
    /// The time so many microseconds after 1970.
    #[must_use]
    pub fn of_micros(micros: i64) -> Self {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000);
        let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (hour, minute, second, micros) = at.to_hms_micro();
        let date = at.date();
        Self(format!(
            "{date}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
        ))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
