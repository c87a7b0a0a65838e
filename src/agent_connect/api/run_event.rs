//! Reads the run events and outputs of a server, in every generation.
//!
//! A LangGraph server names each event after its mode, and the state of the thread holds the outcome
//! of the run.

use serde_json::{Map, Value, json};

use super::error::RpcError;
use super::run::{Interrupt, RunOutcome};

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
    Outcome(RunOutcome),
    /// Nothing for the client.
    Ignored,
}

/// Reads the data of an event.
pub fn parse_event(data: &Value) -> RunEvent {
    let ended = matches!(text(data, "status"), Some("success" | "error" | "timeout"));
    let outcome = |data| outcome(data).map_or(RunEvent::Ignored, RunEvent::Outcome);
    match text(data, "type") {
        Some("values" | "result") if ended => outcome(data),
        Some("values" | "result") => RunEvent::Messages(messages(data)),
        Some("custom") => custom(&data["update"]),
        Some("interrupt" | "error") => outcome(data),
        _ => RunEvent::Ignored,
    }
}

/// Reads an event of a LangGraph server by its name, which begins with its mode, and its data.
pub fn parse_graph_event(name: &str, data: &Value) -> RunEvent {
    // A subgraph sends `messages|SUBGRAPH`.
    let name = name.split('|').next().unwrap_or_default();
    match name {
        "metadata" | "messages/metadata" | "end" => RunEvent::Ignored,
        // A chunk with its metadata, or a whole message that was not streamed by a model.
        "messages" => match data.get(0) {
            Some(chunk) if chunk["type"] == "AIMessageChunk" => RunEvent::Chunk(chunk.clone()),
            Some(message) => RunEvent::NewMessages(vec![message.clone()]),
            None => RunEvent::Ignored,
        },
        "messages/partial" | "messages/complete" => RunEvent::NewMessages(list(data)),
        "updates" => {
            let steps = data.as_object().into_iter().flat_map(Map::values);
            RunEvent::NewMessages(steps.flat_map(|step| list(&step["messages"])).collect())
        }
        "custom" => custom(data),
        // Servers that do not name events stream values.
        _ if name == "error" || data["error"].is_string() && data["message"].is_string() => {
            let texts = ["error", "message"].map(|name| text(data, name));
            let message = match texts.into_iter().flatten().collect::<Vec<_>>() {
                none if none.is_empty() => data.to_string(),
                texts => texts.join(": "),
            };
            RunEvent::Outcome(RunOutcome::Error(RpcError::from_run(None, Some(&message))))
        }
        "values" | "" | "message" => RunEvent::Messages(messages(data)),
        _ => RunEvent::Ignored,
    }
}

/// The outcome of a run on a LangGraph server by the state of its thread.
pub fn graph_outcome(state: &Value) -> RunOutcome {
    for task in state["tasks"].as_array().into_iter().flatten() {
        if let Some(message) = text(task, "error") {
            return RunOutcome::Error(RpcError::from_run(None, Some(message)));
        }
        if let Some(payload) = task.pointer("/interrupts/0/value") {
            return RunOutcome::Interrupt(Interrupt {
                name: "interrupt".to_owned(),
                payload: payload.clone(),
                wrapped: false,
            });
        }
    }
    result(&state["values"], state)
}

/// The outcome of a run by the response of `/wait`, which is `{run, output}`, or of `/output`,
/// which is the output alone; `None` when the run has no outcome yet.
pub fn outcome(answer: &Value) -> Option<RunOutcome> {
    let output = answer.get("output").filter(|output| output.is_object());
    let output = output.unwrap_or(answer);
    let status = answer.pointer("/run/status").and_then(Value::as_str);
    let status = status.or_else(|| text(answer, "status"));
    Some(match (text(output, "type"), status) {
        (Some("interrupt"), _) | (None, Some("interrupted")) => {
            RunOutcome::Interrupt(interrupt(output))
        }
        (_, Some("timeout")) => {
            let what = "the run took longer than its server permits";
            RunOutcome::Error(RpcError::internal(what))
        }
        (Some("error"), _) | (_, Some("error")) => RunOutcome::Error(RpcError::from_run(
            output["errcode"].as_i64(),
            text(output, "description"),
        )),
        (Some("result" | "values"), _) | (None, Some("success")) => {
            let values = output.get("values").or_else(|| output.get("result"));
            let values = values.unwrap_or(&Value::Null);
            result(values, output)
        }
        _ => return None,
    })
}

/// The result of a run by its values, and by what holds its messages.
pub fn result(values: &Value, of: &Value) -> RunOutcome {
    RunOutcome::Result {
        values: match values {
            Value::Object(map) => map.clone(),
            Value::Null => Map::new(),
            other => Map::from_iter([("result".to_owned(), other.clone())]),
        },
        messages: messages(of),
        text: None,
    }
}

/// The messages in an output, an event or a thread: at its top, or in its values.
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
    text.map(|text| json!({ "role": "ai", "content": text }))
        .into_iter()
        .collect()
}

/// ACP's stop reason of a run that has ended: the one in its values, or `end_turn`.
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
pub fn structured(values: &Map<String, Value>) -> Option<String> {
    let mut rest = values.clone();
    for known in ["stopReason", "messages", "message", "toolCalls", "plan"] {
        rest.remove(known);
    }
    (!rest.is_empty()).then(|| Value::Object(rest).to_string())
}

fn interrupt(output: &Value) -> Interrupt {
    let wrapped = text(output, "interrupt_type");
    let (name, payload) = match (wrapped, &output["interrupt"]) {
        (Some(name), _) => (name, &output["interrupt_payload"]),
        (None, Value::Object(map)) if map.len() == 1 => match map.iter().next() {
            Some((name, payload)) => (name.as_str(), payload),
            None => ("interrupt", &Value::Null),
        },
        (None, other) => ("interrupt", other),
    };
    Interrupt {
        name: name.to_owned(),
        payload: payload.clone(),
        wrapped: wrapped.is_some(),
    }
}

/// An update of the agent: one of ACP, or its own.
fn custom(update: &Value) -> RunEvent {
    match update {
        Value::Null => RunEvent::Ignored,
        acp if acp["sessionUpdate"].is_string() => RunEvent::Update(acp.clone()),
        other => RunEvent::Custom(other.clone()),
    }
}

fn list(data: &Value) -> Vec<Value> {
    match data {
        Value::Array(all) => all.clone(),
        Value::Object(_) => vec![data.clone()],
        _ => Vec::new(),
    }
}

fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}
