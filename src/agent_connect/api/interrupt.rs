//! Interrupts: questions of an agent to its user, and the answers.
//!
//! `session/request_permission` is the interrupt `acp_permission`, `elicitation/create` is
//! `acp_elicitation`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::api_error::ApiError;
use super::body::{read, read_as};
use super::permissions::Permissions;

/// The interrupt for a permission request.
pub const PERMISSION: &str = "acp_permission";
/// The interrupt for a form.
pub const ELICITATION: &str = "acp_elicitation";

/// The members of a form, in ACP and in Agent Connect.
pub const FORM_MEMBERS: [(&str, &str); 6] = [
    ("message", "message"),
    ("mode", "mode"),
    ("requestedSchema", "requested_schema"),
    ("url", "url"),
    ("elicitationId", "elicitation_id"),
    ("toolCallId", "tool_call_id"),
];

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

/// The member of all resume payloads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Cancel {
    cancelled: bool,
}

/// The answer to a permission request.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PermissionAnswer {
    option_id: Option<String>,
    approved: Option<bool>,
}

/// The answer to a form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FormAnswer {
    action: Option<Action>,
    approved: Option<bool>,
    content: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// What may stand beside a resume payload.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wrapped {
    interrupt_type: Option<String>,
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
            Kind::Elicitation => &FORM_MEMBERS,
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
        let what = "the resume payload";
        if read_as::<Cancel>(what, resume)?.cancelled {
            return Ok(self.cancelled());
        }
        match self.kind {
            Kind::Permission => self.permission_result(read_as(what, resume)?),
            Kind::Elicitation => Ok(form_result(read_as(what, resume)?, resume)),
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
                option_of(&self.params, &["allow_once", "allow_always"])
            }
            (Kind::Permission, _) => option_of(&self.params, &["reject_once", "reject_always"]),
        };
        chosen.map_or_else(|| self.cancelled(), |option| selected(&option))
    }

    fn permission_result(&self, given: PermissionAnswer) -> Result<Value, ApiError> {
        if let Some(option) = given.option_id {
            if !options(&self.params).any(|one| one["optionId"] == option) {
                let what = format!("{option:?} is none of the options");
                return Err(ApiError::invalid(what));
            }
            return Ok(selected(&option));
        }
        let Some(approved) = given.approved else {
            let what = "the resume payload must hold \"option_id\", \"approved\" or \"cancelled\"";
            return Err(ApiError::invalid(what));
        };
        let kind = if approved {
            "allow_once"
        } else {
            "reject_once"
        };
        match option_of(&self.params, &[kind]) {
            Some(option) => Ok(selected(&option)),
            None if !approved => Ok(self.cancelled()),
            None => Err(ApiError::invalid(
                "none of the options is of kind allow_once",
            )),
        }
    }
}

/// The first option of the first of these kinds that a permission request has.
#[must_use]
pub fn option_of(params: &Value, kinds: &[&str]) -> Option<String> {
    let of_kind = |kind: &&str| {
        let found = options(params).find(|one| one["kind"] == **kind)?;
        found["optionId"].as_str().map(str::to_owned)
    };
    kinds.iter().find_map(of_kind)
}

fn options(params: &Value) -> impl Iterator<Item = &Value> {
    params["options"].as_array().into_iter().flatten()
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

/// A form is answered with `{"action", "content"}` as in ACP, or with its members alone.
fn form_result(given: FormAnswer, resume: &Value) -> Value {
    match (given.action, given.approved) {
        (Some(Action::Decline), _) | (None, Some(false)) => {
            return json!({ "action": "decline" });
        }
        (Some(Action::Cancel), _) => return json!({ "action": "cancel" }),
        (Some(Action::Accept), _) | (None, _) => {}
    }
    let content = given.content.unwrap_or_else(|| {
        let mut rest = resume.as_object().cloned().unwrap_or_default();
        for known in ["request_id", "action", "approved", "cancelled", "content"] {
            rest.remove(known);
        }
        rest
    });
    let mut answer = json!({ "action": "accept" });
    if !content.is_empty() {
        answer["content"] = Value::Object(content);
    }
    answer
}

/// The resume payload of a body: the body itself, or its `resume_payload` beside `interrupt_type`,
/// as in the prose specification. If it has an id, the id names the question that it answers.
///
/// # Errors
/// 422, when the body is not an object or names another interrupt type.
pub fn resume_payload<'a>(body: &'a Value, open: &AgentQuestion) -> Result<&'a Value, ApiError> {
    let wrapped: Wrapped = read(body)?;
    if wrapped
        .interrupt_type
        .as_ref()
        .is_some_and(|named| named != open.name())
    {
        let what = format!("the open interrupt is of type {}", open.name());
        return Err(ApiError::invalid(what));
    }
    match (body.get("resume_payload"), wrapped.interrupt_type) {
        (Some(inner), _) if !inner.is_null() => Ok(inner),
        (_, Some(_)) => Err(ApiError::invalid("\"resume_payload\" is missing")),
        (_, None) => Ok(body),
    }
}
