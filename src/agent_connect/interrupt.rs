//! Interrupts: questions of an agent to its user, and the answers.
//!
//! `session/request_permission` is the interrupt `acp_permission`, `elicitation/create` is
//! `acp_elicitation`.

use serde_json::{Value, json};

use super::api_error::ApiError;
use super::fields::RequestFields;
use super::run_request::Permissions;

/// The interrupt for a permission request.
pub const PERMISSION: &str = "acp_permission";
/// The interrupt for a form.
pub const ELICITATION: &str = "acp_elicitation";

/// A question of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentQuestion {
    /// The id of its request, unchanged.
    pub id: Value,
    kind: Kind,
    params: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Permission,
    Elicitation,
}

impl AgentQuestion {
    /// The question in a request; `None` when the request is not a question.
    #[must_use]
    pub fn from_request(id: Value, method: &str, params: Value) -> Option<Self> {
        let kind = match method {
            "session/request_permission" => Kind::Permission,
            "elicitation/create" => Kind::Elicitation,
            _ => return None,
        };
        Some(Self { id, kind, params })
    }

    /// The session it belongs to.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.params.get("sessionId")?.as_str()
    }

    /// The name of its interrupt.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.kind {
            Kind::Permission => PERMISSION,
            Kind::Elicitation => ELICITATION,
        }
    }

    /// The payload shown to a client; `more` is the number of questions queued behind it.
    #[must_use]
    pub fn payload(&self, more: usize) -> Value {
        let params = &self.params;
        let shown: &[(&str, &str)] = match self.kind {
            Kind::Permission => &[("toolCall", "tool_call"), ("options", "options")],
            Kind::Elicitation => &[
                ("message", "message"),
                ("mode", "mode"),
                ("requestedSchema", "requested_schema"),
                ("url", "url"),
                ("elicitationId", "elicitation_id"),
                ("toolCallId", "tool_call_id"),
            ],
        };
        let mut payload = json!({ "request_id": self.id, "session_id": self.session() });
        for (name, shown_as) in shown {
            if let Some(value) = params.get(*name) {
                payload[*shown_as] = value.clone();
            }
        }
        payload["more"] = json!(more);
        payload
    }

    /// The result for the agent that a resume payload means.
    ///
    /// # Errors
    /// 422, when the payload does not answer the question; the question stays open.
    pub fn answer(&self, resume: &Value) -> Result<Value, ApiError> {
        let fields = RequestFields::new(resume)
            .map_err(|_| ApiError::invalid("the resume payload must be a JSON object"))?;
        if fields.boolean("cancelled")? == Some(true) {
            return Ok(self.cancelled());
        }
        match self.kind {
            Kind::Permission => self.permission_result(fields),
            Kind::Elicitation => form_result(fields, resume),
        }
    }

    /// The result when no answer will come.
    #[must_use]
    pub fn cancelled(&self) -> Value {
        match self.kind {
            Kind::Permission => json!({ "outcome": { "outcome": "cancelled" } }),
            Kind::Elicitation => json!({ "action": "cancel" }),
        }
    }

    /// The result when it is answered by rule, without the client. A form is always declined.
    #[must_use]
    pub fn by_rule(&self, rule: Permissions) -> Value {
        let chosen = match (self.kind, rule) {
            (Kind::Elicitation, _) => return json!({ "action": "decline" }),
            (Kind::Permission, Permissions::Allow) => {
                self.option_of(&["allow_once", "allow_always"])
            }
            (Kind::Permission, _) => self.option_of(&["reject_once", "reject_always"]),
        };
        chosen.map_or_else(|| self.cancelled(), |option| selected(&option))
    }

    fn permission_result(&self, fields: RequestFields<'_>) -> Result<Value, ApiError> {
        if let Some(option) = fields.text("option_id")? {
            let mut known = self
                .options()
                .filter_map(|one| one.get("optionId")?.as_str());
            if !known.any(|one| one == option) {
                let what = format!("{option:?} is none of the options");
                return Err(ApiError::invalid(what));
            }
            return Ok(selected(option));
        }
        let kind = match fields.boolean("approved")? {
            Some(true) => "allow_once",
            Some(false) => "reject_once",
            None => {
                let what =
                    "the resume payload must hold \"option_id\", \"approved\" or \"cancelled\"";
                return Err(ApiError::invalid(what));
            }
        };
        match self.option_of(&[kind]) {
            Some(option) => Ok(selected(&option)),
            None if kind == "reject_once" => Ok(self.cancelled()),
            None => Err(ApiError::invalid(
                "none of the options is of kind allow_once",
            )),
        }
    }

    fn options(&self) -> impl Iterator<Item = &Value> {
        let options = self.params.get("options").and_then(Value::as_array);
        options.into_iter().flatten()
    }

    /// The first option of the first of these kinds that exists.
    fn option_of(&self, kinds: &[&str]) -> Option<String> {
        let of_kind = |kind: &&str| {
            let found = self
                .options()
                .find(|one| one.get("kind").is_some_and(|k| k == *kind))?;
            Some(found.get("optionId")?.as_str()?.to_owned())
        };
        kinds.iter().find_map(of_kind)
    }
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

/// A form is answered with `{"action", "content"}` as in ACP, or with its members alone.
fn form_result(fields: RequestFields<'_>, resume: &Value) -> Result<Value, ApiError> {
    let actions = ["accept", "decline", "cancel"];
    let action = match fields.choice("action", &actions)? {
        Some(at) => actions[at],
        None if fields.boolean("approved")? == Some(false) => "decline",
        None => "accept",
    };
    if action != "accept" {
        return Ok(json!({ "action": action }));
    }
    let content = match fields.object("content")? {
        Some(content) => content.clone(),
        None => {
            let mut rest = resume.as_object().cloned().unwrap_or_default();
            for known in ["request_id", "action", "approved", "cancelled", "content"] {
                rest.remove(known);
            }
            rest
        }
    };
    let mut answer = json!({ "action": "accept" });
    if !content.is_empty() {
        answer["content"] = Value::Object(content);
    }
    Ok(answer)
}

/// The resume payload of a body: the body itself, or its `resume_payload` beside `interrupt_type`,
/// as in the prose specification. If it has an id, the id names the question that it answers.
///
/// # Errors
/// 422, when the body is not an object or names another interrupt type.
pub fn resume_payload<'a>(body: &'a Value, open: &AgentQuestion) -> Result<&'a Value, ApiError> {
    let fields = RequestFields::new(body)?;
    let Some(named) = fields.text("interrupt_type")? else {
        return Ok(fields.get("resume_payload").unwrap_or(body));
    };
    if named != open.name() {
        let what = format!("the open interrupt is of type {}", open.name());
        return Err(ApiError::invalid(what));
    }
    fields
        .get("resume_payload")
        .ok_or_else(|| ApiError::invalid("\"resume_payload\" is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission() -> AgentQuestion {
        let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": [
            { "optionId": "y", "name": "Yes", "kind": "allow_once" },
            { "optionId": "n", "name": "No", "kind": "reject_once" },
        ] });
        AgentQuestion::from_request(json!(5), "session/request_permission", params)
            .expect("a permission")
    }

    #[test]
    fn permission_is_answered_by_option_id() {
        let question = permission();
        let payload = question.payload(1);
        assert_eq!(payload["request_id"], 5);
        assert_eq!(payload["more"], 1);
        let yes = json!({ "outcome": { "outcome": "selected", "optionId": "y" } });
        assert_eq!(
            question.answer(&json!({ "option_id": "y" })),
            Ok(yes.clone())
        );
        assert_eq!(
            question.answer(&json!({ "approved": true })),
            Ok(yes.clone())
        );
        assert_eq!(question.by_rule(Permissions::Allow), yes);
        assert_eq!(
            question.answer(&json!({ "cancelled": true })),
            Ok(question.cancelled())
        );
        for bad in [
            json!({}),
            json!([]),
            json!({ "option_id": "z" }),
            json!({ "approved": 1 }),
        ] {
            assert_eq!(question.answer(&bad).expect_err("no answer").status, 422);
        }
    }

    #[test]
    fn form_accepts_both_answer_formats() {
        let params = json!({ "sessionId": "s", "mode": "form", "message": "Which day?", "requestedSchema": {} });
        let question =
            AgentQuestion::from_request(json!("e"), "elicitation/create", params).expect("a form");
        let filled = json!({ "action": "accept", "content": { "day": "Monday" } });
        assert_eq!(question.answer(&filled), Ok(filled.clone()));
        assert_eq!(
            question.answer(&json!({ "request_id": "e", "day": "Monday" })),
            Ok(filled)
        );
        assert_eq!(
            question.answer(&json!({ "action": "decline" })),
            Ok(json!({ "action": "decline" }))
        );
    }

    #[test]
    fn wrapped_resume_payload_is_read() {
        let wrapped =
            json!({ "interrupt_type": PERMISSION, "resume_payload": { "option_id": "y" } });
        assert_eq!(
            resume_payload(&wrapped, &permission()),
            Ok(&json!({ "option_id": "y" }))
        );
        let other = json!({ "interrupt_type": ELICITATION, "resume_payload": {} });
        assert_eq!(
            resume_payload(&other, &permission())
                .expect_err("another type")
                .status,
            422
        );
    }
}
