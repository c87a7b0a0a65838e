//! The payload of an interrupt and the values that resume the run: by its schema, or by its form.

use serde_json::{Map, Value, json};

use super::run_event::Interrupt;
use crate::agent_connect::api::content::plain_text;

/// Words for yes in a schema's enumerations.
const YES: [&str; 7] = ["yes", "y", "approve", "approved", "accept", "allow", "true"];
const NO: [&str; 8] = [
    "no", "n", "reject", "rejected", "deny", "decline", "false", "cancel",
];

/// The resume payload for a typed answer: JSON, or a text where the payload has one place for it.
pub(super) fn typed_answer(text: &str, schema: Option<&Value>) -> Value {
    if let Ok(read @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
        return read;
    }
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let mut strings = properties
        .into_iter()
        .flatten()
        .filter(|(_, property)| property["type"] == "string");
    match (strings.next(), strings.next()) {
        (Some((name, _)), None) => Value::Object(Map::from_iter([(name.clone(), text.into())])),
        _ => text.into(),
    }
}

/// The resume payloads for yes and for no, if one boolean or one word suffices. A payload without a
/// schema is judged by the interrupt's name.
pub(super) fn approval(interrupt: &Interrupt, schema: Option<&Value>) -> Option<(Value, Value)> {
    let Some(schema) = schema else {
        if let Some(sides) = decisions(&interrupt.payload) {
            return Some(sides);
        }
        let name = interrupt.name.to_ascii_lowercase();
        let is_approval = ["approv", "confirm", "permission"]
            .iter()
            .any(|word| name.contains(word));
        return is_approval.then(|| (json!({ "approved": true }), json!({ "approved": false })));
    };
    let Some(properties) = schema["properties"].as_object() else {
        return yes_no(schema);
    };
    let required = schema["required"].as_array();
    let (name, property) = match required.map(Vec::as_slice) {
        Some([only]) => properties.get_key_value(only.as_str()?)?,
        Some([]) | None if properties.len() == 1 => properties.iter().next()?,
        Some([]) | None => {
            let mut flags = properties.iter().filter(|(_, of)| of["type"] == "boolean");
            let flag = flags.next()?;
            flags.next().is_none().then_some(flag)?
        }
        Some(_) => return None,
    };
    let (yes, no) = yes_no(property)?;
    let with = |side: Value| Value::Object(Map::from_iter([(name.clone(), side)]));
    Some((with(yes), with(no)))
}

/// A schema that a form can show: every property is primitive. Optional properties that are not are
/// left out; a required one gives `None`.
pub(super) fn flat_schema(schema: &Value) -> Option<Value> {
    let properties = schema.get("properties")?.as_object()?;
    let required = schema["required"].as_array();
    let needs = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let mut fields = Map::new();
    for (name, property) in properties {
        let kind = property["type"].as_str();
        if matches!(kind, Some("string" | "number" | "integer" | "boolean")) {
            fields.insert(name.clone(), property.clone());
        } else if needs(name) {
            return None;
        }
    }
    if fields.is_empty() {
        return None;
    }
    let mut flat = json!({ "type": "object", "properties": fields });
    if let Some(required) = required {
        flat["required"] = json!(required);
    }
    Some(flat)
}

/// A payload as text for a person.
pub(super) fn message(payload: &Value) -> String {
    let Some(members) = payload.as_object() else {
        return plain_text(payload);
    };
    let names = ["question", "message", "prompt", "text"];
    if let Some(text) = names.iter().find_map(|name| members.get(*name)?.as_str()) {
        return text.to_owned();
    }
    let line = |(name, value): (&String, &Value)| format!("{name}: {}", plain_text(value));
    members.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The decisions for LangChain's requests to review the actions of an agent.
fn decisions(payload: &Value) -> Option<(Value, Value)> {
    if let Some(requests) = payload["action_requests"].as_array() {
        let all = |kind: &str| vec![json!({ "type": kind }); requests.len()];
        let decided = |kind: &str| json!({ "decisions": all(kind) });
        return Some((decided("approve"), decided("reject")));
    }
    let requests = payload.as_array()?;
    let are_actions = requests
        .iter()
        .all(|one| one.get("action_request").is_some());
    let all = |kind: &str| json!(vec![json!({ "type": kind, "args": null }); requests.len()]);
    (are_actions && !requests.is_empty()).then(|| (all("accept"), all("ignore")))
}

/// The values for yes and no in a schema of one value.
fn yes_no(schema: &Value) -> Option<(Value, Value)> {
    if schema["type"] == "boolean" {
        return Some((json!(true), json!(false)));
    }
    let words = schema.get("enum")?.as_array()?;
    let of = |known: &[&str]| {
        let is = |word: &&Value| {
            let word = word.as_str().map(str::to_ascii_lowercase);
            word.is_some_and(|word| known.contains(&word.as_str()))
        };
        words.iter().find(is).cloned()
    };
    (words.len() == 2).then(|| Some((of(&YES)?, of(&NO)?)))?
}
