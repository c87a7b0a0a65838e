//! Reads the events of a LangGraph server: its stream names each event after its mode, and the
//! state of the thread holds the outcome of the run.

use serde_json::Value;

use super::failure::Failure;
use super::heard::{Came, Event, Interrupt, messages, text};

/// The requested stream modes: text chunks, the state after each step, and output of the graph's
/// own code.
pub const MODES: [&str; 3] = ["messages-tuple", "values", "custom"];

/// Reads an event by its name, which begins with its mode, and its data.
#[must_use]
pub fn event(name: &str, data: &Value) -> Event {
    // A subgraph sends `messages|SUBGRAPH`.
    let name = name.split('|').next().unwrap_or_default();
    match name {
        "metadata" | "messages/metadata" | "end" => Event::Nothing,
        "messages" => piece(data),
        "messages/partial" | "messages/complete" => Event::More(list(data)),
        "updates" => {
            let steps = data
                .as_object()
                .into_iter()
                .flat_map(|steps| steps.values());
            Event::More(steps.flat_map(|step| list(&step["messages"])).collect())
        }
        "custom" if data.get("sessionUpdate").is_some_and(Value::is_string) => {
            Event::Update(data.clone())
        }
        "custom" => Event::Custom(data.clone()),
        "error" => Event::Came(Came::Failed(failed(data))),
        // Servers that do not name events stream values.
        _ if text(data, "error").is_some() && text(data, "message").is_some() => {
            Event::Came(Came::Failed(failed(data)))
        }
        "values" | "" | "message" => Event::Messages(messages(data)),
        _ => Event::Nothing,
    }
}

/// The outcome of a run by the state of its thread.
#[must_use]
pub fn came(state: &Value) -> Came {
    let tasks = state.get("tasks").and_then(Value::as_array);
    for task in tasks.into_iter().flatten() {
        if let Some(what) = text(task, "error") {
            return Came::Failed(Failure::of_run(None, Some(what)));
        }
        if let Some(payload) = task.pointer("/interrupts/0/value") {
            return Came::Interrupt(Interrupt {
                name: "interrupt".to_owned(),
                payload: payload.clone(),
                wrapped: false,
            });
        }
    }
    let values = state.get("values").and_then(Value::as_object);
    Came::Result {
        values: values.cloned().unwrap_or_default(),
        messages: messages(state),
    }
}

/// A chunk of a message with its metadata; or a whole message that was not streamed by a model.
fn piece(data: &Value) -> Event {
    let Some(message) = data.get(0) else {
        return Event::Nothing;
    };
    match text(message, "type") {
        Some("AIMessageChunk") => Event::Piece(message.clone()),
        _ => Event::More(vec![message.clone()]),
    }
}

fn list(data: &Value) -> Vec<Value> {
    match data {
        Value::Array(all) => all.clone(),
        Value::Object(_) => vec![data.clone()],
        _ => Vec::new(),
    }
}

fn failed(data: &Value) -> Failure {
    let what = match (text(data, "error"), text(data, "message")) {
        (Some(error), Some(message)) => format!("{error}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => data.to_string(),
    };
    Failure::of_run(None, Some(&what))
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
            ("metadata", json!({ "run_id": "r" }), Event::Nothing),
            ("messages", json!([chunk, {}]), Event::Piece(chunk.clone())),
            (
                "messages|sub",
                json!([whole, {}]),
                Event::More(vec![whole.clone()]),
            ),
            (
                "messages/partial",
                json!([whole]),
                Event::More(vec![whole.clone()]),
            ),
            (
                "updates",
                json!({ "node": values, "other": null }),
                Event::More(vec![whole.clone()]),
            ),
            (
                "updates",
                json!({ "__interrupt__": [{ "value": 1 }] }),
                Event::More(Vec::new()),
            ),
            (
                "values",
                values.clone(),
                Event::Messages(vec![whole.clone()]),
            ),
            ("", values.clone(), Event::Messages(vec![whole.clone()])),
            (
                "custom",
                json!({ "step": 1 }),
                Event::Custom(json!({ "step": 1 })),
            ),
            ("debug", json!({ "messages": [whole] }), Event::Nothing),
        ] {
            assert_eq!(event(name, &data), expected, "{name} {data}");
        }
        let error = json!({ "error": "ValueError", "message": "no" });
        for name in ["error", "values"] {
            assert!(
                matches!(event(name, &error), Event::Came(Came::Failed(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn the_state_of_a_thread_says_what_came_of_its_run() {
        let state = json!({ "values": { "messages": [1] }, "tasks": [{ "interrupts": [{ "value": "Sure?" }] }] });
        assert!(matches!(came(&state), Came::Interrupt(one) if one.payload == "Sure?"));
        let state = json!({ "values": { "messages": [1] }, "tasks": [] });
        assert!(matches!(came(&state), Came::Result { messages, .. } if messages == [json!(1)]));
    }
}
