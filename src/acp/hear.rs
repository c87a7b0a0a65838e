//! Checks a conversation against the schema, message by message, by method and side.

use serde_json::Value;

use super::deviation::{cut, shown};
use super::methods::Method;
use super::pairs::{Asked, Key, Pairs};
use super::walk::Walk;
use super::{Deviation, Kind, Weight};
use crate::jsonrpc::{self, Envelope, Fault, Frame, Limits, Shape, Side};

/// The role of a message in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It needs an answer.
    Request,
    /// It needs none.
    Notification,
    /// It answers with a result.
    Result,
    /// It answers with an error.
    Error,
}

/// The result of checking one message.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Who sent it, if that is known or can be derived.
    pub from: Option<Side>,
    /// Its role; `None` when it is not a message.
    pub role: Option<Role>,
    /// Its method, or that of the request it answers.
    pub method: Option<String>,
    /// All its violations.
    pub deviations: Vec<Deviation>,
    /// Whether its params or its result were checked against a type. They are not for methods that
    /// begin with `_`, nor for answers to unseen requests.
    pub checked: bool,
}

/// Checks one conversation.
#[derive(Debug)]
pub struct Conversation {
    pairs: Pairs,
    limits: Limits,
    /// Whether only one side's messages are seen.
    one_sided: bool,
}

impl Role {
    /// The id in reports: `request`, `notification`, `result` or `error`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl Conversation {
    /// A checker for a new conversation. With `one_sided`, an answer to an unseen request is not a
    /// violation.
    #[must_use]
    pub fn new(one_sided: bool) -> Self {
        Self {
            pairs: Pairs::default(),
            limits: Limits::default(),
            one_sided,
        }
    }

    /// Checks the next message. `from` is its sender, if that is known.
    #[must_use]
    pub fn hear(&mut self, from: Option<Side>, message: &Frame) -> Verdict {
        self.hear_as(from, message, None)
    }

    /// [`Checker::check`] with the method of the request that an answer is for. For a translated
    /// request, that is the method its receiver got, and not the one of this conversation.
    #[must_use]
    pub fn hear_as(&mut self, from: Option<Side>, message: &Frame, asked: Option<&str>) -> Verdict {
        let mut verdict = Verdict {
            from,
            role: None,
            method: None,
            deviations: Vec::new(),
            checked: false,
        };
        let envelope = match jsonrpc::scan(message, &self.limits) {
            Shape::One(envelope) => envelope,
            Shape::Batch => {
                verdict.whole(Kind::Batch, message, "one message; ACP has no batches");
                return verdict;
            }
            Shape::Bad(flaw) => {
                let kind = match flaw.fault {
                    Fault::Malformed { .. } | Fault::TooDeep { .. } | Fault::TooLong { .. } => {
                        Kind::NotJson
                    }
                    _ => Kind::NotJsonRpc,
                };
                verdict.whole(kind, message, &format!("a JSON-RPC message; {flaw}"));
                return verdict;
            }
        };
        let value = match serde_json::from_slice(message.as_bytes()) {
            Ok(value) => value,
            Err(error) => {
                // The envelope is known all the same, so that the answer or the request still
                // matches.
                verdict.whole(
                    Kind::Unreadable,
                    message,
                    &format!("readable JSON; {error}"),
                );
                Value::Null
            }
        };
        match envelope.kind {
            jsonrpc::Kind::Request | jsonrpc::Kind::Notification => {
                self.call(&mut verdict, &envelope, message, &value);
            }
            jsonrpc::Kind::Result | jsonrpc::Kind::Error => {
                self.answer(&mut verdict, &envelope, message, &value, asked);
            }
        }
        if !value.is_null() {
            verdict.envelope(&value);
        }
        verdict
    }

    fn call(&mut self, to: &mut Verdict, envelope: &Envelope, message: &Frame, value: &Value) {
        let name = envelope.method(message).into_owned();
        let request = envelope.kind == jsonrpc::Kind::Request;
        to.role = Some(if request {
            Role::Request
        } else {
            Role::Notification
        });
        let method = Method::named(&name);
        if to.from.is_none() {
            to.from = method.and_then(|method| method.handler).map(Side::other);
        }
        if request
            && let Some(key) = Key::of(envelope.id(message))
            && !self.pairs.ask(to.from, key, name.clone())
        {
            to.refuse(
                Kind::ReusedId,
                "/id",
                value.get("id"),
                "the id of no open request",
            );
        }
        match method {
            Some(method) => to.params(method, request, value),
            None if name.starts_with('_') => {}
            None => to.refuse(
                Kind::UnknownMethod,
                "/method",
                value.get("method"),
                "a method of ACP v1, or a name that begins with _",
            ),
        }
        to.method = Some(name);
    }

    fn answer(
        &mut self,
        to: &mut Verdict,
        envelope: &Envelope,
        message: &Frame,
        value: &Value,
        asked: Option<&str>,
    ) {
        let role = match envelope.kind {
            jsonrpc::Kind::Error => Role::Error,
            _ => Role::Result,
        };
        to.role = Some(role);
        let Some(key) = Key::of(envelope.id(message)) else {
            // An error without an id reports an unreadable message (JSON-RPC 2.0, §5).
            if role == Role::Error {
                to.checked = true;
                to.deviations = body(role, None, value);
            } else if envelope.id != jsonrpc::IdAt::Absent {
                let wants = "the id of an open request";
                to.refuse(Kind::UnmatchedAnswer, "/id", value.get("id"), wants);
            }
            return;
        };
        // Without known sides two requests can share the id; the one whose type fits best is taken.
        let mut candidates = self.pairs.candidates(to.from, &key);
        if let Some(method) = asked {
            if candidates.is_empty() {
                candidates.push((to.from.map(Side::other), Asked::default()));
            }
            for (_, request) in &mut candidates {
                method.clone_into(&mut request.method);
            }
        }
        let best = candidates
            .into_iter()
            .map(|(asker, asked)| {
                (
                    body(role, Method::named(&asked.method), value),
                    asker,
                    asked,
                )
            })
            .min_by_key(|(found, ..)| found.len());
        let Some((found, asker, asked)) = best else {
            if role == Role::Error {
                to.checked = true;
                to.deviations.extend(body(role, None, value));
            }
            if !self.one_sided {
                let wants = "the id of an open request of the other side";
                to.refuse(Kind::UnmatchedAnswer, "/id", value.get("id"), wants);
            }
            return;
        };
        self.pairs.close(asker, &key);
        to.from = to.from.or_else(|| asker.map(Side::other));
        to.checked = role == Role::Error || Method::named(&asked.method).is_some();
        to.deviations.extend(found);
        to.method = Some(asked.method);
    }
}

/// The violations in the result or the error of an answer.
fn body(role: Role, method: Option<&Method>, value: &Value) -> Vec<Deviation> {
    match (role, method.and_then(|method| method.result)) {
        // It could not be parsed, which was reported.
        _ if value.is_null() => Vec::new(),
        (Role::Error, _) => Walk::at("/error").definition(&value["error"], "Error"),
        (_, Some(definition)) => Walk::at("/result").definition(&value["result"], definition),
        (_, None) => Vec::new(),
    }
}

impl Verdict {
    fn refuse(&mut self, kind: Kind, pointer: &str, value: Option<&Value>, wants: &str) {
        self.deviations.push(Deviation {
            kind,
            weight: Weight::Refused,
            pointer: pointer.to_owned(),
            found: value.map(shown),
            wants: wants.to_owned(),
        });
    }

    /// Adds a violation by the message as a whole.
    fn whole(&mut self, kind: Kind, message: &Frame, wants: &str) {
        let head = &message.as_bytes()[..message.len().min(400)];
        self.deviations.push(Deviation {
            kind,
            weight: Weight::Refused,
            pointer: String::new(),
            found: Some(cut(&String::from_utf8_lossy(head))),
            wants: wants.to_owned(),
        });
    }

    /// Checks who calls, whether with an id, and the params.
    fn params(&mut self, method: &Method, request: bool, value: &Value) {
        if method.handler.is_some() && method.handler == self.from {
            let wants = format!(
                "this from the {} only",
                self.from.map_or("", |s| s.other().name())
            );
            self.refuse(Kind::WrongSide, "/method", value.get("method"), &wants);
        }
        match (method.result.is_some(), request) {
            (true, false) => {
                self.refuse(
                    Kind::MissingMember,
                    "/id",
                    None,
                    "an id; this method is a request",
                );
            }
            (false, true) => {
                let wants = "no id; this method is a notification";
                self.refuse(Kind::UnknownMember, "/id", value.get("id"), wants);
            }
            _ => {}
        }
        let Some(definition) = method.params else {
            return;
        };
        self.checked = true;
        let walk = Walk::at("/params");
        match value.get("params") {
            // The schema lets params be null, and JSON-RPC lets them be left out.
            None | Some(Value::Null) if walk.optional(definition) || value.is_null() => {}
            None => {
                let wants = format!("an object ({definition})");
                self.refuse(Kind::MissingMember, "/params", None, &wants);
            }
            Some(params) => self.deviations.extend(walk.definition(params, definition)),
        }
    }

    /// Checks the members around the body.
    fn envelope(&mut self, value: &Value) {
        let Some(members) = value.as_object() else {
            return;
        };
        match members.get("jsonrpc") {
            Some(version) if version == "2.0" => {}
            Some(other) => {
                self.refuse(Kind::UnknownValue, "/jsonrpc", Some(other), "\"2.0\"");
            }
            None => self.refuse(Kind::MissingMember, "/jsonrpc", None, "\"2.0\""),
        }
        let call = matches!(self.role, Some(Role::Request | Role::Notification));
        match members.get("id") {
            Some(id) => self
                .deviations
                .extend(Walk::at("/id").definition(id, "RequestId")),
            None if call => {}
            None => self.refuse(Kind::MissingMember, "/id", None, "the id of the request"),
        }
        for (name, found) in members {
            let known = match name.as_str() {
                "jsonrpc" | "id" => true,
                "method" | "params" => call,
                "result" => self.role == Some(Role::Result),
                "error" => self.role == Some(Role::Error),
                _ => false,
            };
            if !known {
                let step = name.replace('~', "~0").replace('/', "~1");
                self.deviations.push(Deviation {
                    kind: Kind::UnknownMember,
                    weight: Weight::Ignored,
                    pointer: format!("/{step}"),
                    found: Some(shown(found)),
                    wants: "no such member in a JSON-RPC message".to_owned(),
                });
            }
        }
    }
}
