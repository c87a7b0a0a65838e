//! Levels of comparison: what of a conversation must be the same in the live one.

use std::collections::HashMap;
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::matching::REDACTED;
use jsonrpc::{Kind, Side};
use recording::canonical::Step;

/// Members whose texts say what a value is, and are not written by a model.
const WORDS: [&str; 7] = [
    "sessionUpdate",
    "type",
    "kind",
    "status",
    "stopReason",
    "outcome",
    "role",
];

/// What of a conversation is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CompareLevel {
    /// All messages, without what differs in every run, such as ids and times
    #[default]
    Exact,
    /// The methods and the members of messages; not texts, numbers, and how often a member of a
    /// list or an update is repeated
    Shape,
    /// The names (or else titles) and kinds of tool calls, in order
    Tools,
    /// Why each turn ended
    StopReason,
}

impl CompareLevel {
    /// The steps of a conversation that are compared, reduced to what is.
    pub(super) fn reduce(self, steps: Vec<Step>) -> Vec<Step> {
        match self {
            Self::Exact => steps,
            Self::Shape => shapes(steps),
            Self::Tools => tool_calls(steps),
            Self::StopReason => steps.into_iter().filter_map(stop_reason).collect(),
        }
    }
}

fn shapes(steps: Vec<Step>) -> Vec<Step> {
    let mut shapes: Vec<Step> = Vec::new();
    // The last message of each side in each session.
    let mut last: HashMap<(Side, Option<String>), usize> = HashMap::new();
    for mut step in steps {
        step.body = shape(&step.body, "");
        let key = (step.from, step.session.clone());
        let is_repeated = step.kind == Some(Kind::Notification)
            && last
                .get(&key)
                .is_some_and(|at| shapes[*at].json() == step.json());
        if !is_repeated {
            last.insert(key, shapes.len());
            shapes.push(step);
        }
    }
    shapes
}

/// A value without its texts and numbers, and without repetitions in lists.
fn shape(value: &Value, member: &str) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != "_meta");
            let shapes = members.map(|(name, value)| (name.clone(), shape(value, name)));
            Value::Object(shapes.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut shapes: Vec<Value> = items.iter().map(|item| shape(item, member)).collect();
            shapes.dedup();
            Value::Array(shapes)
        }
        // It stands for a value of any type.
        Value::String(text) if text.starts_with(REDACTED.0) => value.clone(),
        Value::String(_) if WORDS.contains(&member) => value.clone(),
        Value::String(_) => Value::from(""),
        Value::Number(_) => Value::from(0),
        Value::Bool(_) => Value::Bool(false),
        Value::Null => Value::Null,
    }
}

/// A step for each tool call, at the place of its first update; the others complete it.
fn tool_calls(steps: Vec<Step>) -> Vec<Step> {
    let mut calls: Vec<Step> = Vec::new();
    let mut known: HashMap<(Option<String>, String), usize> = HashMap::new();
    for step in steps {
        let update = step.body["update"].clone();
        let Some(id) = update["toolCallId"].as_str() else {
            continue;
        };
        let at = *known
            .entry((step.session.clone(), id.to_owned()))
            .or_insert(calls.len());
        if at == calls.len() {
            let body = json!({"update": {"sessionUpdate": "tool_call"}});
            calls.push(Step { body, ..step });
        }
        let call = &mut calls[at].body["update"];
        for member in ["name", "title", "kind"] {
            if call[member].is_null() && !update[member].is_null() {
                call[member] = update[member].clone();
            }
        }
    }
    for call in calls
        .iter_mut()
        .filter_map(|call| call.body["update"].as_object_mut())
    {
        if call.contains_key("name") {
            call.remove("title");
        }
    }
    calls
}

/// The end of a turn: the answer to a prompt; in v2, an update of the session's state.
fn stop_reason(mut step: Step) -> Option<Step> {
    let is_answer = step.from == Side::Agent && step.method == "session/prompt";
    step.body = match step.kind {
        Some(Kind::Error) if is_answer => json!({"code": step.body["code"]}),
        Some(Kind::Result) if is_answer => json!({"stopReason": step.body["stopReason"]}),
        Some(Kind::Notification) => {
            let reason = step.body["update"]["stopReason"].as_str()?;
            json!({"update": {"sessionUpdate": step.update(), "stopReason": reason}})
        }
        _ => return None,
    };
    Some(step)
}
