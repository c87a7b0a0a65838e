//! Reads a server's run events and outputs, in every generation.

use serde_json::{Map, Value};

use super::error::RemoteError;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteOutcome {
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
pub struct Interrupt {
    /// Its type.
    pub name: String,
    /// The payload.
    pub payload: Value,
    /// The server uses `interrupt_type` and `interrupt_payload`, and expects the answer in that
    /// form.
    pub wrapped: bool,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
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
#[must_use]
pub fn parse_event(data: &Value) -> RunEvent {
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
#[must_use]
pub fn outcome(answer: &Value) -> Option<RemoteOutcome> {
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
#[must_use]
pub fn messages(of: &Value) -> Vec<Value> {
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
#[must_use]
pub fn stop_reason(values: &Map<String, Value>) -> &str {
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
#[must_use]
pub fn structured(values: &Map<String, Value>) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outcome_is_read_in_every_api_version() {
        let new = json!({ "run": { "status": "success" }, "output": { "type": "result", "values": { "stopReason": "refusal" }, "messages": [1] } });
        let Some(RemoteOutcome::Result { values, messages }) = outcome(&new) else {
            panic!("no result");
        };
        assert_eq!(
            (stop_reason(&values), messages),
            ("refusal", vec![json!(1)])
        );
        let old = json!({ "type": "result", "run_id": "r", "status": "success", "result": { "message": "Hi" } });
        assert!(
            matches!(outcome(&old), Some(RemoteOutcome::Result { messages, .. }) if messages[0]["content"] == "Hi")
        );
        let error = json!({ "type": "error", "errcode": -32000, "description": "log in" });
        assert_eq!(
            outcome(&error),
            Some(RemoteOutcome::Failed(RemoteError::new(-32000, "log in")))
        );
        let timeout = json!({ "run": { "status": "timeout" }, "output": null });
        assert!(matches!(outcome(&timeout), Some(RemoteOutcome::Failed(_))));
        assert_eq!(
            outcome(&json!({ "run": { "status": "pending" }, "output": null })),
            None
        );
    }

    #[test]
    fn both_spellings_of_an_interrupt_are_read() {
        let new = json!({ "type": "interrupt", "interrupt": { "approval": { "a": 1 } } });
        let old = json!({ "type": "interrupt", "interrupt_type": "approval", "interrupt_payload": { "a": 1 } });
        for (shape, wrapped) in [(new, false), (old, true)] {
            let expected = Interrupt {
                name: "approval".to_owned(),
                payload: json!({ "a": 1 }),
                wrapped,
            };
            assert_eq!(outcome(&shape), Some(RemoteOutcome::Interrupt(expected)));
        }
    }

    #[test]
    fn stream_with_outcome_needs_no_state_request() {
        let last = json!({ "type": "values", "status": "success", "values": {}, "messages": [] });
        assert!(matches!(
            parse_event(&last),
            RunEvent::Outcome(RemoteOutcome::Result { .. })
        ));
        let more = json!({ "type": "values", "status": "pending", "values": { "messages": [2] } });
        assert_eq!(parse_event(&more), RunEvent::Messages(vec![json!(2)]));
        let update = json!({ "type": "custom", "update": { "sessionUpdate": "plan" } });
        assert!(matches!(parse_event(&update), RunEvent::Update(_)));
    }
}
