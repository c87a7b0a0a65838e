//! Checks a conversation against the schema, message by message, by method and side.

use serde_json::Value;

use super::methods::Method;
use super::validate::Validator;
use super::violation::truncate;
use super::{Violation, ViolationKind};
use crate::jsonrpc::{
    self, Envelope, Frame, FrameFault, Id, Kind, Limits, PendingRequests, Scanned, Side,
};

/// The result of checking one message.
#[derive(Clone, Debug)]
pub struct CheckedMessage {
    /// The side that sent it, if that is known or can be derived.
    pub from: Option<Side>,
    /// Its kind; `None` when it is not a message.
    pub kind: Option<Kind>,
    /// Its method, or that of the request it answers.
    pub method: Option<String>,
    /// All its violations.
    pub violations: Vec<Violation>,
    /// Whether its params or its result were checked against a type. They are not for methods that
    /// begin with `_`, nor for answers to unseen requests.
    pub checked: bool,
}

/// A request that was not answered yet.
#[derive(Clone, Debug, Default)]
struct OpenRequest {
    method: String,
    /// How many requests came before it.
    order: u64,
}

/// Checks one conversation.
#[derive(Debug)]
pub struct Checker {
    /// The open requests of the client, of the agent, and of a side that is not known.
    open: [PendingRequests<OpenRequest>; 3],
    requests: u64,
    limits: Limits,
    /// Whether only one side's messages are seen.
    one_sided: bool,
}

impl Checker {
    /// A checker for a new conversation. With `one_sided`, an answer to an unseen request is not a
    /// violation.
    #[must_use]
    pub fn new(one_sided: bool) -> Self {
        Self {
            open: std::array::from_fn(|_| PendingRequests::new(usize::MAX)),
            requests: 0,
            limits: Limits::default(),
            one_sided,
        }
    }

    /// Checks the next message. `from` is its sender, if that is known.
    #[must_use]
    pub fn check(&mut self, from: Option<Side>, message: &Frame) -> CheckedMessage {
        self.check_as(from, message, None)
    }

    /// [`Checker::check`] with the method of the request that an answer is for. For a translated
    /// request, that is the method its receiver got, and not the one of this conversation.
    #[must_use]
    pub fn check_as(
        &mut self,
        from: Option<Side>,
        message: &Frame,
        request_method: Option<&str>,
    ) -> CheckedMessage {
        let mut result = CheckedMessage {
            from,
            kind: None,
            method: None,
            violations: Vec::new(),
            checked: false,
        };
        let envelope = match jsonrpc::scan(message, &self.limits) {
            Scanned::Message(envelope) => envelope,
            Scanned::Batch => {
                result.refuse_message(
                    ViolationKind::Batch,
                    message,
                    "one message; ACP has no batches",
                );
                return result;
            }
            Scanned::Invalid(error) => {
                let kind = match error.fault {
                    FrameFault::Malformed { .. }
                    | FrameFault::TooDeep { .. }
                    | FrameFault::TooLong { .. } => ViolationKind::NotJson,
                    _ => ViolationKind::NotJsonRpc,
                };
                result.refuse_message(kind, message, &format!("a JSON-RPC message; {error}"));
                return result;
            }
        };
        let value = match serde_json::from_slice(message.as_bytes()) {
            Ok(value) => value,
            Err(error) => {
                // The envelope is known all the same, so that the answer or the request still
                // matches.
                result.refuse_message(
                    ViolationKind::Unreadable,
                    message,
                    &format!("readable JSON; {error}"),
                );
                Value::Null
            }
        };
        result.kind = Some(envelope.kind);
        match envelope.kind.is_answer() {
            false => self.call(&mut result, &envelope, message, &value),
            true => self.answer(&mut result, &envelope, message, &value, request_method),
        }
        if !value.is_null() {
            result.envelope(&value);
        }
        result
    }

    fn call(
        &mut self,
        to: &mut CheckedMessage,
        envelope: &Envelope,
        message: &Frame,
        value: &Value,
    ) {
        let name = envelope.method(message).into_owned();
        let request = envelope.kind == Kind::Request;
        let method = Method::named(&name);
        if to.from.is_none() {
            to.from = method.and_then(|method| method.handler).map(Side::other);
        }
        let id = envelope.id(message);
        if request && id.is_value() {
            let open = &mut self.open[table_of(to.from)];
            if open.remove(id).is_some() {
                to.refuse(
                    ViolationKind::ReusedId,
                    "/id",
                    value.get("id"),
                    "the id of no open request",
                );
            }
            self.requests += 1;
            let order = self.requests;
            let method = name.clone();
            // The id is free now, and there is no limit.
            let _ = open.insert(id, OpenRequest { method, order });
        }
        match method {
            Some(method) => to.params(method, request, value),
            None if name.starts_with('_') => {}
            None => to.refuse(
                ViolationKind::UnknownMethod,
                "/method",
                value.get("method"),
                "a method of ACP v1, or a name that begins with _",
            ),
        }
        to.method = Some(name);
    }

    fn answer(
        &mut self,
        to: &mut CheckedMessage,
        envelope: &Envelope,
        message: &Frame,
        value: &Value,
        request_method: Option<&str>,
    ) {
        let kind = envelope.kind;
        let id = envelope.id(message);
        if !id.is_value() {
            // An error without an id reports an unreadable message (JSON-RPC 2.0, §5).
            if kind == Kind::Error {
                to.checked = true;
                to.violations = body(kind, None, value);
            } else if envelope.id != jsonrpc::IdAt::Absent {
                let expected = "the id of an open request";
                to.refuse(
                    ViolationKind::UnmatchedAnswer,
                    "/id",
                    value.get("id"),
                    expected,
                );
            }
            return;
        }
        // Without known sides two requests can share the id; the one whose type fits best is taken.
        let mut candidates = self.candidates(to.from, id);
        if let Some(method) = request_method {
            if candidates.is_empty() {
                candidates.push((to.from.map(Side::other), OpenRequest::default()));
            }
            for (_, request) in &mut candidates {
                method.clone_into(&mut request.method);
            }
        }
        let best = candidates
            .into_iter()
            .map(|(requester, request)| {
                (
                    body(kind, Method::named(&request.method), value),
                    requester,
                    request,
                )
            })
            .min_by_key(|(found, ..)| found.len());
        let Some((found, requester, request)) = best else {
            if kind == Kind::Error {
                to.checked = true;
                to.violations.extend(body(kind, None, value));
            }
            if !self.one_sided {
                let expected = "the id of an open request of the other side";
                to.refuse(
                    ViolationKind::UnmatchedAnswer,
                    "/id",
                    value.get("id"),
                    expected,
                );
            }
            return;
        };
        self.open[table_of(requester)].remove(id);
        to.from = to.from.or_else(|| requester.map(Side::other));
        to.checked = kind == Kind::Error || Method::named(&request.method).is_some();
        to.violations.extend(found);
        to.method = Some(request.method);
    }

    /// The requests that an answer of `from` with this id can match, the latest first.
    fn candidates(&self, from: Option<Side>, id: Id<'_>) -> Vec<(Option<Side>, OpenRequest)> {
        let requesters = [Some(Side::Client), Some(Side::Agent), None];
        let mut found: Vec<_> = requesters
            .into_iter()
            .filter(|requester| from.is_none() || *requester != from)
            .filter_map(|requester| {
                let open = self.open[table_of(requester)].get(id)?;
                Some((requester, open.clone()))
            })
            .collect();
        found.sort_by_key(|(_, open)| std::cmp::Reverse(open.order));
        found
    }
}

/// The place of a side's requests in [`Checker::open`].
fn table_of(requester: Option<Side>) -> usize {
    requester.map_or(2, |side| side as usize)
}

/// The violations in the result or the error of an answer.
fn body(kind: Kind, method: Option<&Method>, value: &Value) -> Vec<Violation> {
    match (kind, method.and_then(|method| method.result)) {
        // It could not be parsed, which was reported.
        _ if value.is_null() => Vec::new(),
        (Kind::Error, _) => Validator::at("/error").definition(&value["error"], "Error"),
        (_, Some(definition)) => Validator::at("/result").definition(&value["result"], definition),
        (_, None) => Vec::new(),
    }
}

impl CheckedMessage {
    fn refuse(
        &mut self,
        kind: ViolationKind,
        pointer: &str,
        value: Option<&Value>,
        expected: &str,
    ) {
        let violation = Violation::refused(kind, pointer, value, expected);
        self.violations.push(violation);
    }

    /// Adds a violation by the message as a whole.
    fn refuse_message(&mut self, kind: ViolationKind, message: &Frame, expected: &str) {
        let head = &message.as_bytes()[..message.len().min(400)];
        let found = Some(truncate(&String::from_utf8_lossy(head)));
        let violation = Violation::refused(kind, "", None, expected);
        self.violations.push(Violation { found, ..violation });
    }

    /// Checks which side calls, whether with an id, and the params.
    fn params(&mut self, method: &Method, request: bool, value: &Value) {
        if method.handler.is_some() && method.handler == self.from {
            let expected = format!(
                "this from the {} only",
                self.from.map_or("", |s| s.other().name())
            );
            self.refuse(
                ViolationKind::WrongSide,
                "/method",
                value.get("method"),
                &expected,
            );
        }
        match (method.result.is_some(), request) {
            (true, false) => {
                self.refuse(
                    ViolationKind::MissingMember,
                    "/id",
                    None,
                    "an id; this method is a request",
                );
            }
            (false, true) => {
                let expected = "no id; this method is a notification";
                self.refuse(
                    ViolationKind::UnknownMember,
                    "/id",
                    value.get("id"),
                    expected,
                );
            }
            _ => {}
        }
        let Some(definition) = method.params else {
            return;
        };
        self.checked = true;
        let walk = Validator::at("/params");
        match value.get("params") {
            // The schema lets params be null, and JSON-RPC lets them be left out.
            None | Some(Value::Null) if walk.optional(definition) || value.is_null() => {}
            None => {
                let expected = format!("an object ({definition})");
                self.refuse(ViolationKind::MissingMember, "/params", None, &expected);
            }
            Some(params) => self.violations.extend(walk.definition(params, definition)),
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
                self.refuse(
                    ViolationKind::UnknownValue,
                    "/jsonrpc",
                    Some(other),
                    "\"2.0\"",
                );
            }
            None => self.refuse(ViolationKind::MissingMember, "/jsonrpc", None, "\"2.0\""),
        }
        let call = self.kind.is_some_and(|kind| !kind.is_answer());
        match members.get("id") {
            Some(id) => self
                .violations
                .extend(Validator::at("/id").definition(id, "RequestId")),
            None if call => {}
            None => self.refuse(
                ViolationKind::MissingMember,
                "/id",
                None,
                "the id of the request",
            ),
        }
        for (name, found) in members {
            let known = match name.as_str() {
                "jsonrpc" | "id" => true,
                "method" | "params" => call,
                "result" => self.kind == Some(Kind::Result),
                "error" => self.kind == Some(Kind::Error),
                _ => false,
            };
            if !known {
                let pointer = format!("/{}", jsonptr::Token::new(name).encoded());
                let expected = "no such member in a JSON-RPC message";
                let kind = ViolationKind::UnknownMember;
                let violation = Violation::refused(kind, &pointer, Some(found), expected);
                self.violations.push(violation.ignored());
            }
        }
    }
}
