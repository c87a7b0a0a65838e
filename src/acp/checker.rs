//! Checks a conversation against the schema, message by message, by method and side.

use serde_json::Value;

use super::Violation;
use super::ViolationKind::{
    self, Batch, MissingMember, NotJson, NotJsonRpc, ReusedId, UnknownMember, UnknownMethod,
    UnknownValue, UnmatchedAnswer, Unreadable, WrongSide,
};
use super::methods::Method;
use super::validate::Validator;
use super::violation::truncate;
use crate::jsonrpc::{
    self, Envelope, Frame, FrameFault, Kind, Limits, PendingRequests, Scanned, Side,
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

/// Checks one conversation.
#[derive(Debug)]
pub struct Checker {
    /// The methods of the open requests of the client, of the agent, and of a side that is not known.
    open: [PendingRequests<String>; 3],
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
                result.refuse_message(Batch, message, "one message; ACP has no batches");
                return result;
            }
            Scanned::Invalid(error) => {
                let kind = match error.fault {
                    FrameFault::Malformed { .. }
                    | FrameFault::TooDeep { .. }
                    | FrameFault::TooLong { .. } => NotJson,
                    _ => NotJsonRpc,
                };
                result.refuse_message(kind, message, &format!("a JSON-RPC message; {error}"));
                return result;
            }
        };
        let value = serde_json::from_slice(message.as_bytes()).unwrap_or_else(|error| {
            // The envelope is known all the same, so that the answer or the request still matches.
            result.refuse_message(Unreadable, message, &format!("readable JSON; {error}"));
            Value::Null
        });
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
                to.refuse(ReusedId, "/id", value, "the id of no open request");
            }
            // The id is free now, and there is no limit.
            let _ = open.insert(id, name.clone());
        }
        match method {
            Some(method) => to.params(method, request, value),
            None if name.starts_with('_') => {}
            None => {
                let expected = "a method of ACP v1, or a name that begins with _";
                to.refuse(UnknownMethod, "/method", value, expected);
            }
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
        let id = envelope.id(message);
        let is_error = envelope.kind == Kind::Error;
        let violations = |method: &str| body(envelope.kind, Method::named(method), value);
        // Without known sides two requests can share the id; the one whose type fits best is taken.
        // Requests of an agent are mostly made, and answered, during one of the client's.
        let requesters = [Some(Side::Agent), Some(Side::Client), None].into_iter();
        let candidates = requesters.filter_map(|requester| {
            let can_ask = to.from.is_none() || requester != to.from;
            let open = self.open[table_of(requester)].get(id).filter(|_| can_ask)?;
            let method = request_method.unwrap_or(open).to_owned();
            Some((violations(&method), requester, method))
        });
        let best = candidates
            .min_by_key(|(found, ..)| found.len())
            .or_else(|| {
                let method = request_method.filter(|_| id.is_value())?.to_owned();
                Some((violations(&method), to.from.map(Side::other), method))
            });
        let Some((found, requester, method)) = best else {
            // An error without an id reports an unreadable message (JSON-RPC 2.0, §5).
            if is_error {
                to.checked = true;
                to.violations.extend(violations(""));
            }
            let expected = match id.is_value() {
                true if !self.one_sided => "the id of an open request of the other side",
                false if !is_error && envelope.id.is_some() => "the id of an open request",
                _ => return,
            };
            return to.refuse(UnmatchedAnswer, "/id", value, expected);
        };
        self.open[table_of(requester)].remove(id);
        to.from = to.from.or_else(|| requester.map(Side::other));
        to.checked = is_error || Method::named(&method).is_some();
        to.violations.extend(found);
        to.method = Some(method);
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
    /// Adds a violation at a place of the message.
    fn refuse(&mut self, kind: ViolationKind, pointer: &str, message: &Value, expected: &str) {
        let found = message.pointer(pointer);
        let violation = Violation::refused(kind, pointer, found, expected);
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
        if let Some(from) = self.from.filter(|_| method.handler == self.from) {
            let expected = format!("this from the {} only", from.other());
            self.refuse(WrongSide, "/method", value, &expected);
        }
        match (method.result.is_some(), request) {
            (true, false) => {
                self.refuse(
                    MissingMember,
                    "/id",
                    value,
                    "an id; this method is a request",
                );
            }
            (false, true) => {
                let expected = "no id; this method is a notification";
                self.refuse(UnknownMember, "/id", value, expected);
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
                self.refuse(MissingMember, "/params", value, &expected);
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
            Some(_) => self.refuse(UnknownValue, "/jsonrpc", value, "\"2.0\""),
            None => self.refuse(MissingMember, "/jsonrpc", value, "\"2.0\""),
        }
        let call = self.kind.is_some_and(|kind| !kind.is_answer());
        match members.get("id") {
            Some(id) => {
                let found = Validator::at("/id").definition(id, "RequestId");
                self.violations.extend(found);
            }
            None if call => {}
            None => self.refuse(MissingMember, "/id", value, "the id of the request"),
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
                let violation = Violation::refused(UnknownMember, &pointer, Some(found), expected);
                self.violations.push(violation.ignored());
            }
        }
    }
}
