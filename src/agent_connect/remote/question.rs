//! Maps an interrupt of a run to a request to the client, and the client's answer to a resume
//! payload.
//!
//! Interrupts that are ACP's own questions, sent by a relay, become the original requests. Of the
//! others, one that needs yes or no becomes a permission request, and one that needs values becomes
//! a form.

use serde_json::{Value, json};

use super::payload::{approval, flat_schema, message, typed_answer};
use super::run_event::Interrupt;
use crate::agent_connect::interrupt::{ELICITATION, PERMISSION};
use crate::agent_connect::run_request::Permissions;

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
    /// The tool call that represents the interrupt, if the client must receive one.
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

/// The meaning of a client's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum InterruptAnswer {
    /// The run is resumed with this payload.
    Resume(Value),
    /// There is no answer, so the run is cancelled.
    Stop,
}

/// How an interrupt of a run in a session is handled. `schema` is that of the resume payload;
/// `forms`: whether the client supports forms.
#[must_use]
pub fn interrupt_action(
    session: &str,
    run: &str,
    interrupt: &Interrupt,
    schema: Option<&Value>,
    forms: bool,
) -> InterruptAction {
    let payload = &interrupt.payload;
    if interrupt.name == PERMISSION && payload.get("options").is_some_and(Value::is_array) {
        return InterruptAction::Ask(Box::new(permission(session, payload)));
    }
    if interrupt.name == ELICITATION && payload.get("message").is_some() {
        return if forms {
            InterruptAction::Ask(Box::new(elicitation(session, payload)))
        } else {
            InterruptAction::Resume(with_id(
                &payload["request_id"],
                json!({ "action": "decline" }),
            ))
        };
    }
    if let Some((yes, no)) = approval(interrupt, schema) {
        return InterruptAction::Ask(Box::new(approval_question(
            session, run, interrupt, yes, no,
        )));
    }
    if !forms {
        return InterruptAction::Inform(message(payload));
    }
    let (kind, requested) = match schema.and_then(flat_schema) {
        Some(flat) => (Kind::Form, flat),
        None => {
            let field = json!({ "type": "string", "title": "Answer" });
            let requested =
                json!({ "type": "object", "properties": { JSON: field }, "required": [JSON] });
            (Kind::Text, requested)
        }
    };
    InterruptAction::Ask(Box::new(ClientQuestion {
        method: "elicitation/create",
        params: json!({
            "mode": "form",
            "sessionId": session,
            "message": message(payload),
            "requestedSchema": requested,
        }),
        tool_call: None,
        kind,
    }))
}

impl ClientQuestion {
    /// The meaning of the client's result. `None` is an error or a lost client: then `rule`
    /// decides.
    #[must_use]
    pub fn answer(&self, result: Option<&Value>, rule: Permissions) -> InterruptAnswer {
        let text = |pointer: &str| result.and_then(|result| result.pointer(pointer)?.as_str());
        let chosen = match result {
            Some(_) => text("/outcome/optionId").map(str::to_owned),
            None => self.by_rule(rule),
        };
        match &self.kind {
            Kind::Permission(id) => InterruptAnswer::Resume(with_id(
                id,
                match chosen {
                    Some(option) => json!({ "option_id": option }),
                    None => json!({ "cancelled": true }),
                },
            )),
            Kind::Elicitation(id) => {
                let decline = json!({ "action": "decline" });
                InterruptAnswer::Resume(with_id(id, result.cloned().unwrap_or(decline)))
            }
            Kind::Approval(yes, no) => match chosen.as_deref() {
                Some("approve") => InterruptAnswer::Resume(yes.clone()),
                Some(_) => InterruptAnswer::Resume(no.clone()),
                None => InterruptAnswer::Stop,
            },
            Kind::Form | Kind::Text if text("/action") != Some("accept") => InterruptAnswer::Stop,
            Kind::Form => {
                let content = result.and_then(|result| result.get("content")).cloned();
                InterruptAnswer::Resume(content.unwrap_or_else(|| json!({})))
            }
            Kind::Text => {
                let given = result.and_then(|result| result.pointer("/content/json")?.as_str());
                InterruptAnswer::Resume(typed_answer(given.unwrap_or_default(), None))
            }
        }
    }

    /// Whether an answer approves the tool call.
    #[must_use]
    pub fn approves(&self, answer: &InterruptAnswer) -> bool {
        matches!((&self.kind, answer), (Kind::Approval(yes, _), InterruptAnswer::Resume(with)) if yes == with)
    }

    fn by_rule(&self, rule: Permissions) -> Option<String> {
        let kind = if rule == Permissions::Allow {
            "allow_once"
        } else {
            "reject_once"
        };
        let mut options = self.params.get("options")?.as_array()?.iter();
        let option = options.find(|one| one.get("kind").is_some_and(|of| of == kind))?;
        Some(option.get("optionId")?.as_str()?.to_owned())
    }
}

fn permission(session: &str, payload: &Value) -> ClientQuestion {
    let call = payload.get("tool_call").cloned();
    ClientQuestion {
        method: "session/request_permission",
        params: json!({
            "sessionId": session,
            "toolCall": call.unwrap_or_else(|| json!({})),
            "options": payload["options"],
        }),
        tool_call: None,
        kind: Kind::Permission(payload["request_id"].clone()),
    }
}

fn elicitation(session: &str, payload: &Value) -> ClientQuestion {
    let mut params = json!({ "sessionId": session });
    for (from, to) in [
        ("message", "message"),
        ("mode", "mode"),
        ("requested_schema", "requestedSchema"),
        ("url", "url"),
        ("elicitation_id", "elicitationId"),
        ("tool_call_id", "toolCallId"),
    ] {
        if let Some(value) = payload.get(from) {
            params[to] = value.clone();
        }
    }
    ClientQuestion {
        method: "elicitation/create",
        params,
        tool_call: None,
        kind: Kind::Elicitation(payload["request_id"].clone()),
    }
}

fn approval_question(
    session: &str,
    run: &str,
    interrupt: &Interrupt,
    yes: Value,
    no: Value,
) -> ClientQuestion {
    let call = json!({
        "toolCallId": format!("interrupt-{run}"),
        "title": interrupt.name,
        "kind": "other",
        "status": "pending",
        "rawInput": interrupt.payload,
    });
    let mut shown = call.clone();
    let text = json!({ "type": "text", "text": message(&interrupt.payload) });
    shown["content"] = json!([{ "type": "content", "content": text }]);
    ClientQuestion {
        method: "session/request_permission",
        params: json!({
            "sessionId": session,
            "toolCall": shown,
            "options": [
                { "optionId": "approve", "name": "Approve", "kind": "allow_once" },
                { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
            ],
        }),
        tool_call: Some(call),
        kind: Kind::Approval(yes, no),
    }
}

fn with_id(id: &Value, mut payload: Value) -> Value {
    if !id.is_null() {
        payload["request_id"] = id.clone();
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupt(name: &str, payload: Value) -> Interrupt {
        Interrupt {
            name: name.to_owned(),
            payload,
            wrapped: false,
        }
    }

    fn question(name: &str, payload: Value, schema: Option<&Value>) -> ClientQuestion {
        match interrupt_action("s", "r", &interrupt(name, payload), schema, true) {
            InterruptAction::Ask(question) => *question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn permission_of_a_relay_is_restored() {
        let options = json!([{ "optionId": "y", "kind": "allow_once" }, { "optionId": "n", "kind": "reject_once" }]);
        let payload =
            json!({ "request_id": 5, "tool_call": { "toolCallId": "t" }, "options": options });
        let asked = question(PERMISSION, payload, None);
        assert_eq!(
            asked.params,
            json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": options })
        );
        let yes = json!({ "outcome": { "outcome": "selected", "optionId": "y" } });
        let resumes = |with| InterruptAnswer::Resume(with);
        assert_eq!(
            asked.answer(Some(&yes), Permissions::Reject),
            resumes(json!({ "option_id": "y", "request_id": 5 }))
        );
        let no = json!({ "outcome": { "outcome": "cancelled" } });
        assert_eq!(
            asked.answer(Some(&no), Permissions::Allow),
            resumes(json!({ "cancelled": true, "request_id": 5 }))
        );
        assert_eq!(
            asked.answer(None, Permissions::Reject),
            resumes(json!({ "option_id": "n", "request_id": 5 }))
        );
        assert_eq!(
            asked.answer(None, Permissions::Allow),
            resumes(json!({ "option_id": "y", "request_id": 5 }))
        );
    }

    #[test]
    fn one_boolean_is_a_permission() {
        let schema = json!({ "properties": { "approved": { "type": "boolean" }, "reason": { "type": "string" } }, "required": ["approved"] });
        let asked = question(
            "mail_send_approval",
            json!({ "subject": "Hi", "body": "Dear Bob," }),
            Some(&schema),
        );
        assert_eq!(
            asked.params["toolCall"]["content"][0]["content"]["text"],
            "subject: Hi\nbody: Dear Bob,"
        );
        let yes = json!({ "outcome": { "outcome": "selected", "optionId": "approve" } });
        let answer = asked.answer(Some(&yes), Permissions::Reject);
        assert_eq!(answer, InterruptAnswer::Resume(json!({ "approved": true })));
        assert!(asked.approves(&answer));
        assert_eq!(
            asked.answer(None, Permissions::Reject),
            InterruptAnswer::Resume(json!({ "approved": false }))
        );
        let review = json!({ "action_requests": [{ "name": "rm" }, { "name": "ls" }] });
        let asked = question("interrupt", review, None);
        let both = json!({ "decisions": [{ "type": "approve" }, { "type": "approve" }] });
        assert_eq!(
            asked.answer(Some(&yes), Permissions::Reject),
            InterruptAnswer::Resume(both)
        );
        let words = json!({ "enum": ["no", "yes"] });
        let asked = question("go", json!("Go on?"), Some(&words));
        assert_eq!(
            asked.answer(Some(&yes), Permissions::Reject),
            InterruptAnswer::Resume(json!("yes"))
        );
    }

    #[test]
    fn schema_becomes_a_form() {
        let schema = json!({ "type": "object", "properties": { "day": { "type": "string" }, "people": { "type": "integer" } }, "required": ["day"] });
        let asked = question(
            "need_details",
            json!({ "question": "Which day?" }),
            Some(&schema),
        );
        assert_eq!(asked.params["requestedSchema"], schema);
        assert_eq!(asked.params["message"], "Which day?");
        let filled = json!({ "action": "accept", "content": { "day": "Monday" } });
        assert_eq!(
            asked.answer(Some(&filled), Permissions::Reject),
            InterruptAnswer::Resume(json!({ "day": "Monday" }))
        );
        assert_eq!(
            asked.answer(Some(&json!({ "action": "decline" })), Permissions::Reject),
            InterruptAnswer::Stop
        );
        let deep = json!({ "properties": { "a": { "type": "object" } }, "required": ["a"] });
        let asked = question("deep", json!({}), Some(&deep));
        let filled = json!({ "action": "accept", "content": { "json": "{\"a\":{}}" } });
        assert_eq!(
            asked.answer(Some(&filled), Permissions::Reject),
            InterruptAnswer::Resume(json!({ "a": {} }))
        );
        let action = interrupt_action(
            "s",
            "r",
            &interrupt("deep", json!({ "question": "What?" })),
            Some(&deep),
            false,
        );
        assert_eq!(action, InterruptAction::Inform("What?".to_owned()));
        let one = json!({ "properties": { "day": { "type": "string" } } });
        assert_eq!(
            typed_answer("Monday", Some(&one)),
            json!({ "day": "Monday" })
        );
    }
}
