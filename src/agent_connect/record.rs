//! Runs and threads, as stored and as shown.

use serde_json::{Map, Value, json};

use super::timestamp::Timestamp;
use super::uuid::Uuid;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
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
        name: String,
        /// The question.
        payload: Value,
    },
    /// The run failed.
    Error {
        /// A JSON-RPC error code.
        code: i64,
        /// What happened.
        message: String,
    },
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Its id.
    pub id: Uuid,
    /// The agent it runs on.
    pub agent: Uuid,
    /// Its thread, unless the thread was created for this run alone.
    pub thread: Option<Uuid>,
    /// Its status.
    pub status: RunStatus,
    /// When it was requested.
    pub created: Timestamp,
    /// When its status changed last.
    pub updated: Timestamp,
    /// The body of the request that created it.
    pub creation: Value,
    /// Its outcome; `None` while it is pending.
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

impl RunStatus {
    /// All statuses, with their names.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Pending, "pending"),
        (Self::Error, "error"),
        (Self::Success, "success"),
        (Self::Timeout, "timeout"),
        (Self::Interrupted, "interrupted"),
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The status of that name.
    #[must_use]
    pub fn from_name(word: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == word);
        found.map(|(status, _)| *status)
    }

    /// Whether the status is final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Interrupted)
    }
}

impl RunOutcome {
    /// The form in which it is stored.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Result {
                values,
                messages,
                text,
            } => {
                json!({ "values": values, "messages": messages, "text": text })
            }
            Self::Interrupt { name, payload } => json!({ "interrupt": name, "payload": payload }),
            Self::Error {
                code,
                message: what,
            } => json!({ "errcode": code, "description": what }),
        }
    }

    /// Reads the stored form.
    #[must_use]
    pub fn from_json(stored: &Value) -> Option<Self> {
        if let Some(values) = stored.get("values") {
            return Some(Self::Result {
                values: values.as_object()?.clone(),
                messages: stored.get("messages")?.as_array()?.clone(),
                text: stored
                    .get("text")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            });
        }
        if let Some(name) = stored.get("interrupt") {
            return Some(Self::Interrupt {
                name: name.as_str()?.to_owned(),
                payload: stored.get("payload")?.clone(),
            });
        }
        Some(Self::Error {
            code: stored.get("errcode")?.as_i64()?,
            message: stored.get("description")?.as_str()?.to_owned(),
        })
    }
}

impl RunRecord {
    /// The run as both generations show it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut shown = json!({
            "run_id": self.id.to_string(),
            "agent_id": self.agent.to_string(),
            "created_at": self.created.to_string(),
            "updated_at": self.updated.to_string(),
            "status": self.status.name(),
            "creation": self.creation,
        });
        if let Some(thread) = self.thread {
            shown["thread_id"] = json!(thread.to_string());
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
            Some(RunOutcome::Interrupt { name, payload }) => {
                json!({ "type": "interrupt", "interrupt": { name: payload } })
            }
            Some(RunOutcome::Error {
                code,
                message: what,
            }) => json!({
                "type": "error",
                "run_id": self.id.to_string(),
                "errcode": code,
                "description": what,
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
                    "run_id": self.id.to_string(),
                    "status": self.status.name(),
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
    pub fn to_json(&self, status: &str, turns: &[TurnRecord]) -> Value {
        let mut metadata = self.metadata.clone();
        if let Some(session) = &self.session {
            metadata.insert("acp_session_id".to_owned(), json!(session));
        }
        let mut shown = json!({
            "thread_id": self.id.to_string(),
            "created_at": self.created.to_string(),
            "updated_at": self.updated.to_string(),
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

/// The states of a thread: the latest first, at most `limit`, only those before the checkpoint
/// `before`. The id of a checkpoint is the id of the run that led to it.
#[must_use]
pub fn history(turns: &[TurnRecord], limit: usize, before: Option<&str>) -> Vec<Value> {
    let named = |turn: &TurnRecord| before.is_some_and(|before| turn.run.to_string() == before);
    let end = turns.iter().position(named).unwrap_or(turns.len());
    let states = (1..=end).rev().take(limit);
    let state = |count: usize| {
        let turn = &turns[count - 1];
        json!({
            "checkpoint": { "checkpoint_id": turn.run.to_string() },
            "values": turn.values,
            "messages": messages(&turns[..count]),
            "metadata": { "created_at": turn.ended.to_string() },
        })
    };
    states.map(state).collect()
}

fn messages(turns: &[TurnRecord]) -> Vec<&Value> {
    turns.iter().flat_map(|turn| &turn.messages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(n: u8) -> TurnRecord {
        TurnRecord {
            run: Uuid::random([n; 16]),
            ended: Timestamp::default(),
            values: Map::new(),
            messages: vec![json!(n)],
        }
    }

    #[test]
    fn history_is_newest_first() {
        let turns = [turn(1), turn(2), turn(3)];
        let all = history(&turns, 10, None);
        assert_eq!(all.len(), 3);
        assert_eq!(all[0]["messages"], json!([1, 2, 3]));
        assert_eq!(all[2]["messages"], json!([1]));
        let third = turns[2].run.to_string();
        let some = history(&turns, 1, Some(&third));
        assert_eq!(some.len(), 1);
        assert_eq!(some[0]["messages"], json!([1, 2]));
        assert_eq!(state(&turns)["messages"], json!([1, 2, 3]));
    }

    #[test]
    fn outcomes_round_trip() {
        for outcome in [
            RunOutcome::Result {
                values: Map::new(),
                messages: vec![json!(1)],
                text: Some("a".to_owned()),
            },
            RunOutcome::Interrupt {
                name: "x".to_owned(),
                payload: json!({}),
            },
            RunOutcome::Error {
                code: -32603,
                message: "y".to_owned(),
            },
        ] {
            assert_eq!(RunOutcome::from_json(&outcome.to_json()), Some(outcome));
        }
        for (status, word) in RunStatus::ALL {
            assert_eq!(
                (status.name(), RunStatus::from_name(word)),
                (word, Some(status))
            );
        }
    }
}
