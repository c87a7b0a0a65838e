//! Maps an interrupt of a run to a request to the client, and the client's answer to a resume
//! payload.
//!
//! Interrupts that are ACP's own questions, sent by a relay, become the original requests. Of the
//! others, one that needs yes or no becomes a permission request, and one that needs values becomes
//! a form.

use serde_json::{Value, json};

use super::payload::{approval, flat_schema, message, typed_answer};
use super::run_event::Interrupt;
use crate::agent_connect::api::interrupt::{ELICITATION, FORM_MEMBERS, PERMISSION, option_of};
use crate::agent_connect::api::permissions::Permissions;

/// A form's field for an answer that no form can show: JSON.
const JSON: &str = "json";
/// How an interrupt is handled.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum InterruptAction {
    /// The client is asked.
    Ask(Box<ClientQuestion>),
    /// The client cannot be asked: this text is sent, and the next prompt is the answer.
    Inform(String),
    /// The client cannot be asked: this payload resumes the run.
    Resume(Value),
}

/// A question to the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClientQuestion {
    /// The method of the request.
    pub(super) method: &'static str,
    /// Its parameters.
    pub(super) params: Value,
    /// The update with the tool call that represents the interrupt, if the client must receive one.
    pub(super) tool_call: Option<Value>,
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
pub(super) fn interrupt_action(
    session: &str,
    run: &str,
    interrupt: &Interrupt,
    schema: Option<&Value>,
    forms: bool,
) -> InterruptAction {
    let payload = &interrupt.payload;
    if interrupt.name == PERMISSION && payload.get("options").is_some_and(Value::is_array) {
        return permission(session, payload);
    }
    if interrupt.name == ELICITATION && payload.get("message").is_some() {
        if forms {
            return elicitation(session, payload);
        }
        let decline = json!({ "action": "decline" });
        return InterruptAction::Resume(with_id(&payload["request_id"], decline));
    }
    if let Some((yes, no)) = approval(interrupt, schema) {
        return approval_question(session, run, interrupt, Kind::Approval(yes, no));
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
    let params = json!({
        "mode": "form",
        "sessionId": session,
        "message": message(payload),
        "requestedSchema": requested,
    });
    ClientQuestion::ask("elicitation/create", params, kind, None)
}

impl ClientQuestion {
    fn ask(
        method: &'static str,
        params: Value,
        kind: Kind,
        tool_call: Option<Value>,
    ) -> InterruptAction {
        InterruptAction::Ask(Box::new(Self {
            method,
            params,
            tool_call,
            kind,
        }))
    }

    /// The payload that resumes the run, by the client's result; `None` if that is no answer, so
    /// that the run is cancelled. Without a result, after an error or from a lost client, `rule`
    /// decides.
    pub(super) fn answer(&self, result: Option<&Value>, rule: Permissions) -> Option<Value> {
        let text = |pointer: &str| result?.pointer(pointer)?.as_str();
        let chosen = match result {
            Some(_) => text("/outcome/optionId").map(str::to_owned),
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
            Kind::Approval(yes, _) if chosen.as_deref() == Some("approve") => yes.clone(),
            Kind::Approval(_, no) => chosen.map(|_| no.clone())?,
            Kind::Form | Kind::Text if text("/action") != Some("accept") => return None,
            Kind::Form => result?.get("content").cloned().unwrap_or_else(|| json!({})),
            Kind::Text => typed_answer(text("/content/json").unwrap_or_default(), None),
        })
    }

    /// Whether an answer approves the tool call.
    pub(super) fn approves(&self, answer: &Value) -> bool {
        matches!(&self.kind, Kind::Approval(yes, _) if yes == answer)
    }

    fn by_rule(&self, rule: Permissions) -> Option<String> {
        let kind = match rule {
            Permissions::Allow => "allow_once",
            Permissions::Interrupt | Permissions::Reject => "reject_once",
        };
        option_of(&self.params, &[kind])
    }
}

fn permission(session: &str, payload: &Value) -> InterruptAction {
    let params = json!({
        "sessionId": session,
        "toolCall": payload.get("tool_call").unwrap_or(&json!({})),
        "options": payload["options"],
    });
    let kind = Kind::Permission(payload["request_id"].clone());
    ClientQuestion::ask("session/request_permission", params, kind, None)
}

fn elicitation(session: &str, payload: &Value) -> InterruptAction {
    let mut params = json!({ "sessionId": session });
    for (to, from) in FORM_MEMBERS {
        if let Some(value) = payload.get(from) {
            params[to] = value.clone();
        }
    }
    let kind = Kind::Elicitation(payload["request_id"].clone());
    ClientQuestion::ask("elicitation/create", params, kind, None)
}

fn approval_question(
    session: &str,
    run: &str,
    interrupt: &Interrupt,
    kind: Kind,
) -> InterruptAction {
    let call = json!({
        "sessionUpdate": "tool_call",
        "toolCallId": format!("interrupt-{run}"),
        "title": interrupt.name,
        "kind": "other",
        "status": "pending",
        "rawInput": interrupt.payload,
    });
    let mut shown = call.clone();
    shown
        .as_object_mut()
        .map(|members| members.shift_remove("sessionUpdate"));
    let text = json!({ "type": "text", "text": message(&interrupt.payload) });
    shown["content"] = json!([{ "type": "content", "content": text }]);
    let params = json!({
        "sessionId": session,
        "toolCall": shown,
        "options": [
            { "optionId": "approve", "name": "Approve", "kind": "allow_once" },
            { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
        ],
    });
    ClientQuestion::ask("session/request_permission", params, kind, Some(call))
}

fn with_id(id: &Value, mut payload: Value) -> Value {
    if !id.is_null() {
        payload["request_id"] = id.clone();
    }
    payload
}
