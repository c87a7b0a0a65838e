//! Reads the events of a LangGraph server: its stream names each event after its mode, and the
//! state of the thread holds the outcome of the run.

use serde_json::Value;

use super::error::RemoteError;
use super::run_event::{Interrupt, RemoteOutcome, RunEvent, messages, text};

/// The requested stream modes: text chunks, the state after each step, and output of the graph's
/// own code.
pub(super) const STREAM_MODES: [&str; 3] = ["messages-tuple", "values", "custom"];

/// Reads an event by its name, which begins with its mode, and its data.
pub(super) fn event(name: &str, data: &Value) -> RunEvent {
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
pub(super) fn outcome(state: &Value) -> RemoteOutcome {
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
