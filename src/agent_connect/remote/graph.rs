//! Reads the events of a LangGraph server: its stream names each event after its mode, and the
//! state of the thread holds the outcome of the run.

use serde_json::Value;

use super::error::RemoteError;
use super::run_event::{Interrupt, RemoteOutcome, RunEvent, messages, text};

/// The requested stream modes: text chunks, the state after each step, and output of the graph's
/// own code.
pub const STREAM_MODES: [&str; 3] = ["messages-tuple", "values", "custom"];

/// Reads an event by its name, which begins with its mode, and its data.
#[must_use]
pub fn event(name: &str, data: &Value) -> RunEvent {
    // A subgraph sends `messages|SUBGRAPH`.
    let name = name.split('|').next().unwrap_or_default();
    match name {
        "metadata" | "messages/metadata" | "end" => RunEvent::Ignored,
        "messages" => message_event(data),
        "messages/partial" | "messages/complete" => RunEvent::NewMessages(list(data)),
        "updates" => {
            let steps = data
                .as_object()
                .into_iter()
                .flat_map(|steps| steps.values());
            RunEvent::NewMessages(steps.flat_map(|step| list(&step["messages"])).collect())
        }
        "custom" if data.get("sessionUpdate").is_some_and(Value::is_string) => {
            RunEvent::Update(data.clone())
        }
        "custom" => RunEvent::Custom(data.clone()),
        "error" => RunEvent::Outcome(RemoteOutcome::Failed(error(data))),
        // Servers that do not name events stream values.
        _ if text(data, "error").is_some() && text(data, "message").is_some() => {
            RunEvent::Outcome(RemoteOutcome::Failed(error(data)))
        }
        "values" | "" | "message" => RunEvent::Messages(messages(data)),
        _ => RunEvent::Ignored,
    }
}

/// The outcome of a run by the state of its thread.
#[must_use]
pub fn outcome(state: &Value) -> RemoteOutcome {
    let tasks = state.get("tasks").and_then(Value::as_array);
    for task in tasks.into_iter().flatten() {
        if let Some(message) = text(task, "error") {
            return RemoteOutcome::Failed(RemoteError::from_run(None, Some(message)));
        }
        if let Some(payload) = task.pointer("/interrupts/0/value") {
            return RemoteOutcome::Interrupt(Interrupt {
                name: "interrupt".to_owned(),
                payload: payload.clone(),
                wrapped: false,
            });
        }
    }
    let values = state.get("values").and_then(Value::as_object);
    RemoteOutcome::Result {
        values: values.cloned().unwrap_or_default(),
        messages: messages(state),
    }
}

/// A chunk of a message with its metadata; or a whole message that was not streamed by a model.
fn message_event(data: &Value) -> RunEvent {
    let Some(message) = data.get(0) else {
        return RunEvent::Ignored;
    };
    match text(message, "type") {
        Some("AIMessageChunk") => RunEvent::Chunk(message.clone()),
        _ => RunEvent::NewMessages(vec![message.clone()]),
    }
}

fn list(data: &Value) -> Vec<Value> {
    match data {
        Value::Array(all) => all.clone(),
        Value::Object(_) => vec![data.clone()],
        _ => Vec::new(),
    }
}

fn error(data: &Value) -> RemoteError {
    let message = match (text(data, "error"), text(data, "message")) {
        (Some(error), Some(message)) => format!("{error}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => data.to_string(),
    };
    RemoteError::from_run(None, Some(&message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_mode_has_its_own_events() {
        let chunk = json!({ "type": "AIMessageChunk", "id": "m", "content": "He" });
        let whole = json!({ "type": "ai", "id": "m", "content": "Hello" });
        let values = json!({ "messages": [whole] });
        for (name, data, expected) in [
            ("metadata", json!({ "run_id": "r" }), RunEvent::Ignored),
            (
                "messages",
                json!([chunk, {}]),
                RunEvent::Chunk(chunk.clone()),
            ),
            (
                "messages|sub",
                json!([whole, {}]),
                RunEvent::NewMessages(vec![whole.clone()]),
            ),
            (
                "messages/partial",
                json!([whole]),
                RunEvent::NewMessages(vec![whole.clone()]),
            ),
            (
                "updates",
                json!({ "node": values, "other": null }),
                RunEvent::NewMessages(vec![whole.clone()]),
            ),
            (
                "updates",
                json!({ "__interrupt__": [{ "value": 1 }] }),
                RunEvent::NewMessages(Vec::new()),
            ),
            (
                "values",
                values.clone(),
                RunEvent::Messages(vec![whole.clone()]),
            ),
            ("", values.clone(), RunEvent::Messages(vec![whole.clone()])),
            (
                "custom",
                json!({ "step": 1 }),
                RunEvent::Custom(json!({ "step": 1 })),
            ),
            ("debug", json!({ "messages": [whole] }), RunEvent::Ignored),
        ] {
            assert_eq!(event(name, &data), expected, "{name} {data}");
        }
        let error = json!({ "error": "ValueError", "message": "no" });
        for name in ["error", "values"] {
            assert!(
                matches!(
                    event(name, &error),
                    RunEvent::Outcome(RemoteOutcome::Failed(_))
                ),
                "{name}"
            );
        }
    }

    #[test]
    fn outcome_is_read_from_the_thread_state() {
        let state = json!({ "values": { "messages": [1] }, "tasks": [{ "interrupts": [{ "value": "Sure?" }] }] });
        assert!(matches!(outcome(&state), RemoteOutcome::Interrupt(one) if one.payload == "Sure?"));
        let state = json!({ "values": { "messages": [1] }, "tasks": [] });
        assert!(
            matches!(outcome(&state), RemoteOutcome::Result { messages, .. } if messages == [json!(1)])
        );
    }
}
