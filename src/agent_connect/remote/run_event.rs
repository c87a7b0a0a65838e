//! Reads a server's run events and outputs, in every generation.

use serde_json::{Map, Value};

use super::error::RemoteError;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RemoteOutcome {
    /// It has ended.
    Result {
        /// Its values.
        values: Map<String, Value>,
        /// Its messages, where the server sends them as such.
        messages: Vec<Value>,
    },
    /// It waits for an answer.
    Interrupt(Interrupt),
    /// It has failed.
    Failed(RemoteError),
}

/// An interrupt of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Interrupt {
    /// Its type.
    pub(super) name: String,
    /// The payload.
    pub(super) payload: Value,
    /// The server uses `interrupt_type` and `interrupt_payload`, and expects the answer in that
    /// form.
    pub(super) wrapped: bool,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunEvent {
    /// All messages so far.
    Messages(Vec<Value>),
    /// Messages, without those before them.
    NewMessages(Vec<Value>),
    /// A chunk that continues a message.
    Chunk(Value),
    /// An ACP update.
    Update(Value),
    /// A custom update of the agent.
    Custom(Value),
    /// The outcome of the run.
    Outcome(RemoteOutcome),
    /// Nothing for the client.
    Ignored,
}

/// Reads the data of an event.
pub(super) fn parse_event(data: &Value) -> RunEvent {
    let ended = matches!(text(data, "status"), Some("success" | "error" | "timeout"));
    match text(data, "type") {
        Some("values" | "result") if ended => {
            outcome(data).map_or(RunEvent::Ignored, RunEvent::Outcome)
        }
        Some("values" | "result") => RunEvent::Messages(messages(data)),
        Some("custom") => match data.get("update") {
            Some(update) if update.get("sessionUpdate").is_some_and(Value::is_string) => {
                RunEvent::Update(update.clone())
            }
            Some(update) if !update.is_null() => RunEvent::Custom(update.clone()),
            _ => RunEvent::Ignored,
        },
        Some("interrupt" | "error") => outcome(data).map_or(RunEvent::Ignored, RunEvent::Outcome),
        _ => RunEvent::Ignored,
    }
}

/// The outcome of a run by the response of `/wait`, which is `{run, output}`, or of `/output`,
/// which is the output alone; `None` when the run has no outcome yet.
pub(super) fn outcome(answer: &Value) -> Option<RemoteOutcome> {
    let output = answer.get("output").filter(|output| output.is_object());
    let output = output.unwrap_or(answer);
    let status = answer.pointer("/run/status").and_then(Value::as_str);
    let status = status.or_else(|| text(answer, "status"));
    match (text(output, "type"), status) {
        (Some("interrupt"), _) | (None, Some("interrupted")) => {
            Some(RemoteOutcome::Interrupt(interrupt(output)))
        }
        (_, Some("timeout")) => {
            let what = "the run took longer than its server permits";
            Some(RemoteOutcome::Failed(RemoteError::internal(what)))
        }
        (Some("error"), _) | (_, Some("error")) => {
            Some(RemoteOutcome::Failed(RemoteError::from_run(
                output.get("errcode").and_then(Value::as_i64),
                text(output, "description"),
            )))
        }
        (Some("result" | "values"), _) | (None, Some("success")) => {
            let values = output.get("values").or_else(|| output.get("result"));
            Some(RemoteOutcome::Result {
                messages: messages(output),
                values: match values {
                    Some(Value::Object(map)) => map.clone(),
                    Some(Value::Null) | None => Map::new(),
                    Some(other) => Map::from_iter([("result".to_owned(), other.clone())]),
                },
            })
        }
        _ => None,
    }
}

/// The messages in an output, an event or a thread: at its top, or in its values.
pub(super) fn messages(of: &Value) -> Vec<Value> {
    let places = ["/messages", "/values/messages", "/result/messages"];
    let found = places
        .iter()
        .find_map(|place| of.pointer(place)?.as_array().filter(|all| !all.is_empty()));
    if let Some(found) = found {
        return found.clone();
    }
    // The prose specification has one message, a text.
    let message = ["/result/message", "/values/message", "/result"];
    let text = message.iter().find_map(|place| of.pointer(place)?.as_str());
    text.map(|text| super::input::message("ai", text))
        .into_iter()
        .collect()
}

/// ACP's stop reason of a run that has ended: the one in its values, or `end_turn`.
pub(super) fn stop_reason(values: &Map<String, Value>) -> &str {
    let known = [
        "end_turn",
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "cancelled",
    ];
    let reason = values.get("stopReason").and_then(Value::as_str);
    reason
        .filter(|reason| known.contains(reason))
        .unwrap_or("end_turn")
}

/// Values that are not represented by messages, as JSON.
pub(super) fn structured(values: &Map<String, Value>) -> Option<String> {
    let mut rest = values.clone();
    for known in ["stopReason", "messages", "message", "toolCalls", "plan"] {
        rest.remove(known);
    }
    (!rest.is_empty()).then(|| Value::Object(rest).to_string())
}

fn interrupt(output: &Value) -> Interrupt {
    if let Some(name) = text(output, "interrupt_type") {
        let payload = output.get("interrupt_payload").cloned().unwrap_or_default();
        let name = name.to_owned();
        return Interrupt {
            name,
            payload,
            wrapped: true,
        };
    }
    let given = output.get("interrupt").cloned().unwrap_or_default();
    let (name, payload) = match given {
        Value::Object(map) if map.len() == 1 => map.into_iter().next().expect("it has one member"),
        other => ("interrupt".to_owned(), other),
    };
    Interrupt {
        name,
        payload,
        wrapped: false,
    }
}

pub(super) fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}
