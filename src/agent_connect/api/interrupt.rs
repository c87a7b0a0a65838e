//! Interrupts: questions of an agent to its user, and the answers.
//!
//! `session/request_permission` is the interrupt `acp_permission`, `elicitation/create` is
//! `acp_elicitation`.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use super::body::{read, read_as};
use super::error::{ApiError, ApiResult};
use super::run::Interrupt;

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

/// How permission requests of an agent are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "kebab-case")]
pub enum Permissions {
    /// By the client: the run is interrupted. No option, because no client can be asked then
    Interrupt,
    /// Allow it, once
    Allow,
    /// Reject the request
    #[default]
    Reject,
}

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

/// A resume payload, or a body around it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Resume {
    interrupt_type: Option<String>,
    cancelled: bool,
    approved: Option<bool>,
    option_id: Option<Value>,
    action: Option<Action>,
    content: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
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

    /// Its interrupt; `more` is the number of questions queued behind it.
    #[must_use]
    pub fn interrupt(&self, more: usize) -> Interrupt {
        let (name, shown): (_, &[(&str, &str)]) = match self.kind {
            Kind::Permission => (
                PERMISSION,
                &[("toolCall", "tool_call"), ("options", "options")],
            ),
            Kind::Elicitation => (ELICITATION, &FORM_MEMBERS),
        };
        let mut payload = json!({ "request_id": self.id, "session_id": self.session() });
        for (name, shown_as) in shown {
            if let Some(value) = self.params.get(*name) {
                payload[*shown_as] = value.clone();
            }
        }
        payload["more"] = json!(more);
        Interrupt {
            name: name.to_owned(),
            payload,
            wrapped: false,
        }
    }

    /// The result for the agent that the body of a resume request means: the payload, or as in the
    /// prose specification `resume_payload` beside `interrupt_type`.
    ///
    /// # Errors
    /// 422, when the body does not answer the question; the question stays open.
    pub fn answer(&self, body: &Value) -> ApiResult<Value> {
        let open = self.interrupt(0).name;
        let named = read::<Resume>(body)?.interrupt_type;
        if named.as_ref().is_some_and(|named| *named != open) {
            let what = format!("the open interrupt is of type {open}");
            return Err(ApiError::invalid(what));
        }
        let resume = match body.get("resume_payload") {
            Some(inner) if !inner.is_null() => inner,
            _ if named.is_some() => {
                return Err(ApiError::invalid("\"resume_payload\" is missing"));
            }
            _ => body,
        };
        let given: Resume = read_as("the resume payload", resume)?;
        match self.kind {
            _ if given.cancelled => Ok(self.cancelled()),
            Kind::Permission => self.permission_result(&given),
            Kind::Elicitation => Ok(form_result(given, resume)),
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
        let kinds = match (self.kind, rule) {
            (Kind::Elicitation, _) => return json!({ "action": "decline" }),
            (_, Permissions::Allow) => ["allow_once", "allow_always"],
            _ => ["reject_once", "reject_always"],
        };
        let option = option_of(&self.params, &kinds);
        option.map_or_else(|| self.cancelled(), selected)
    }

    fn permission_result(&self, given: &Resume) -> ApiResult<Value> {
        if let Some(option) = &given.option_id {
            let known = options(&self.params).any(|one| one["optionId"] == *option);
            let unknown = || ApiError::invalid(format!("{option} is none of the options"));
            return known.then(|| selected(option)).ok_or_else(unknown);
        }
        let kind = match given.approved {
            Some(true) => "allow_once",
            Some(false) => "reject_once",
            None => {
                let what =
                    "the resume payload must hold \"option_id\", \"approved\" or \"cancelled\"";
                return Err(ApiError::invalid(what));
            }
        };
        match option_of(&self.params, &[kind]) {
            Some(option) => Ok(selected(option)),
            None if kind == "reject_once" => Ok(self.cancelled()),
            None => Err(ApiError::invalid(
                "none of the options is of kind allow_once",
            )),
        }
    }
}

/// The first option of the first of these kinds that a permission request has.
#[must_use]
pub fn option_of<'a>(params: &'a Value, kinds: &[&str]) -> Option<&'a Value> {
    let of_kind = |kind: &&str| options(params).find(|one| one["kind"] == **kind);
    kinds.iter().find_map(of_kind)?.get("optionId")
}

fn options(params: &Value) -> impl Iterator<Item = &Value> {
    params["options"].as_array().into_iter().flatten()
}

fn selected(option: &Value) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

/// A form is answered with `{"action", "content"}` as in ACP, or with its members alone.
fn form_result(given: Resume, resume: &Value) -> Value {
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
