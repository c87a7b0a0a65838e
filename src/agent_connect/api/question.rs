//! Maps an interrupt of a server's run to a request to the client, and the client's answer to the
//! values that resume the run.
//!
//! Interrupts that are ACP's own questions, sent by a relay, become the original requests. Of the
//! others, one that needs yes or no becomes a permission request, and one that needs values becomes
//! a form.

use serde_json::{Map, Value, json};

use super::content::{plain_text, text_block};
use super::interrupt::{ELICITATION, FORM_MEMBERS, PERMISSION, Permissions, option_of};
use super::run::Interrupt;

/// Words for yes in a schema's enumerations.
const YES: [&str; 7] = ["yes", "y", "approve", "approved", "accept", "allow", "true"];
const NO: [&str; 8] = [
    "no", "n", "reject", "rejected", "deny", "decline", "false", "cancel",
];
/// The requests to the client.
const ASK: &str = "session/request_permission";
const FORM: &str = "elicitation/create";
/// A form's field for an answer that no form can show: JSON.
const JSON: &str = "json";

/// How an interrupt is handled.
#[derive(Clone, Debug, PartialEq)]
pub enum InterruptAction {
    /// The client is asked.
    Ask(Box<ClientQuestion>),
    /// The client cannot be asked: this text is sent, and the next prompt is the answer.
    Inform(String),
    /// The client cannot be asked: this payload resumes the run.
    Resume(Value),
}

/// A question to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientQuestion {
    /// The method of the request.
    pub method: &'static str,
    /// Its parameters.
    pub params: Value,
    /// The update with the tool call that represents the interrupt, if the client must receive one.
    pub tool_call: Option<Value>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A relay's permission request, with its `request_id`.
    Permission(Value),
    /// A relay's form, with its `request_id`.
    Elicitation(Value),
    /// The resume payloads for yes and for no.
    Approval(Value, Value),
    /// The members of the payload, as the form has them.
    Form,
    /// The whole payload, as JSON in a form's only field.
    Text,
}

/// How an interrupt of a run in a session is handled. `schema` is that of the resume payload;
/// `forms`: whether the client supports forms.
pub fn interrupt_action(
    session: &str,
    run: &str,
    interrupt: &Interrupt,
    schema: Option<&Value>,
    forms: bool,
) -> InterruptAction {
    let (name, payload) = (interrupt.name.as_str(), &interrupt.payload);
    let id = &payload["request_id"];
    let mut params = json!({ "sessionId": session });
    let mut tool_call = None;
    let (method, kind) = if name == PERMISSION && payload["options"].is_array() {
        let call = payload.get("tool_call").cloned();
        params["toolCall"] = call.unwrap_or_else(|| json!({}));
        params["options"] = payload["options"].clone();
        (ASK, Kind::Permission(id.clone()))
    } else if name == ELICITATION && payload.get("message").is_some() {
        if !forms {
            return InterruptAction::Resume(with_id(id, json!({ "action": "decline" })));
        }
        for (to, from) in FORM_MEMBERS {
            if let Some(value) = payload.get(from) {
                params[to] = value.clone();
            }
        }
        (FORM, Kind::Elicitation(id.clone()))
    } else if let Some((yes, no)) = approval(interrupt, schema) {
        let mut call = json!({
            "toolCallId": format!("interrupt-{run}"),
            "title": name,
            "kind": "other",
            "status": "pending",
            "rawInput": payload,
        });
        params["toolCall"] = call.clone();
        let text = text_block(&message(payload));
        params["toolCall"]["content"] = json!([{ "type": "content", "content": text }]);
        params["options"] = json!([
            { "optionId": "approve", "name": "Approve", "kind": "allow_once" },
            { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
        ]);
        call["sessionUpdate"] = json!("tool_call");
        tool_call = Some(call);
        (ASK, Kind::Approval(yes, no))
    } else if !forms {
        return InterruptAction::Inform(message(payload));
    } else {
        params["mode"] = json!("form");
        params["message"] = json!(message(payload));
        let flat = schema.and_then(flat_schema);
        let kind = if flat.is_some() {
            Kind::Form
        } else {
            Kind::Text
        };
        let answer = json!({ JSON: { "type": "string", "title": "Answer" } });
        params["requestedSchema"] = flat.unwrap_or_else(
            || json!({ "type": "object", "properties": answer, "required": [JSON] }),
        );
        (FORM, kind)
    };
    InterruptAction::Ask(Box::new(ClientQuestion {
        method,
        params,
        tool_call,
        kind,
    }))
}

impl ClientQuestion {
    /// The payload that resumes the run, by the client's result; `None` if that is no answer, so
    /// that the run is cancelled. Without a result, after an error or from a lost client, `rule`
    /// decides.
    pub fn answer(&self, result: Option<&Value>, rule: Permissions) -> Option<Value> {
        let text = |pointer: &str| result?.pointer(pointer)?.as_str();
        let chosen = match result {
            Some(_) => text("/outcome/optionId"),
            None => self.by_rule(rule),
        };
        Some(match &self.kind {
            Kind::Permission(id) => {
                let cancelled = json!({ "cancelled": true });
                let option = chosen.map(|option| json!({ "option_id": option }));
                with_id(id, option.unwrap_or(cancelled))
            }
            Kind::Elicitation(id) => {
                let decline = json!({ "action": "decline" });
                with_id(id, result.cloned().unwrap_or(decline))
            }
            Kind::Approval(yes, _) if chosen == Some("approve") => yes.clone(),
            Kind::Approval(_, no) => chosen.map(|_| no.clone())?,
            Kind::Form | Kind::Text if text("/action") != Some("accept") => return None,
            Kind::Form => result?.get("content").cloned().unwrap_or_else(|| json!({})),
            Kind::Text => typed_answer(text("/content/json").unwrap_or_default(), None),
        })
    }

    /// Whether an answer approves the tool call.
    pub fn approves(&self, answer: &Value) -> bool {
        matches!(&self.kind, Kind::Approval(yes, _) if yes == answer)
    }

    fn by_rule(&self, rule: Permissions) -> Option<&str> {
        let kind = match rule {
            Permissions::Allow => "allow_once",
            Permissions::Interrupt | Permissions::Reject => "reject_once",
        };
        option_of(&self.params, &[kind])?.as_str()
    }
}

fn with_id(id: &Value, mut payload: Value) -> Value {
    if !id.is_null() {
        payload["request_id"] = id.clone();
    }
    payload
}

/// The resume payload for a typed answer: JSON, or a text where the payload has one place for it.
pub fn typed_answer(text: &str, schema: Option<&Value>) -> Value {
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
pub fn approval(interrupt: &Interrupt, schema: Option<&Value>) -> Option<(Value, Value)> {
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
pub fn flat_schema(schema: &Value) -> Option<Value> {
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
pub fn message(payload: &Value) -> String {
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
