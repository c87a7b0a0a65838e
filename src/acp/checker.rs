//! Checks a conversation against the schema, message by message, by method and side.

use serde_json::Value;

use super::ViolationKind::{
    self, Batch, MissingMember, NotJson, NotJsonRpc, ReusedId, UnknownMember, UnknownMethod,
    UnknownValue, UnmatchedAnswer, Unreadable, WrongSide,
};
use super::methods::Method;
use super::validate::Validator;
use super::violation::truncate;
use super::{Schema, Violation};
use jsonrpc::{self, Envelope, Frame, FrameFault, Kind, Limits, PendingRequests, Scanned, Side};

/// The result of checking one message.
#[derive(Clone, Debug, Default)]
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
#[derive(Debug, Default)]
pub struct Checker {
    /// The methods of the open requests of the client, of the agent, and of a side that is not known.
    open: [PendingRequests<String>; 3],
    limits: Limits,
    /// The schema of the client's messages and of the agent's.
    spoken: [Schema; 2],
    /// Whether the client has offered v2, alone or with v1.
    offers_v2: bool,
    /// Whether only one side's messages are seen.
    one_sided: bool,
}

impl Checker {
    /// A checker for a new conversation. With `one_sided`, an answer to an unseen request is not a
    /// violation.
    #[must_use]
    pub fn new(one_sided: bool) -> Self {
        Self {
            one_sided,
            ..Self::default()
        }
    }

    /// The schema of a side's messages: that of the version which the `initialize` exchange shows.
    #[must_use]
    pub const fn spoken(&self, side: Side) -> Schema {
        *side.of(&self.spoken)
    }

    /// Overrules what the `initialize` exchange has shown: a relay may convert between versions.
    pub const fn speaks(&mut self, side: Side, schema: Schema) {
        *side.of_mut(&mut self.spoken) = schema;
    }

    /// Messages are missing: any request may have been answered.
    pub fn forget_requests(&mut self) {
        self.open = Default::default();
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
            ..CheckedMessage::default()
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
        let mut schema = self.spoken(to.from.unwrap_or(Side::Client));
        let known = |schema| Method::named(schema, &name);
        let other = self.spoken(Side::Agent);
        if to.from.is_none() && known(schema).is_none() && known(other).is_some() {
            schema = other;
        }
        if name == "initialize" && to.from != Some(Side::Agent) {
            schema = Schema::of_initialize(&value["params"]);
            self.offers_v2 = value.pointer("/params/info").is_some_and(Value::is_object);
        }
        let method = known(schema);
        if to.from.is_none() {
            to.from = method.and_then(|method| method.handler).map(Side::other);
        }
        let id = envelope.id(message);
        let open = self.open.get_mut(table_of(to.from));
        if let Some(open) = open.filter(|_| request && id.is_value()) {
            if open.remove(id).is_some() {
                to.refuse(ReusedId, "/id", value, "the id of no open request");
            }
            // The id is free now, and there is no limit.
            let _ = open.insert(id, name.clone());
        }
        match method {
            Some(method) => to.params(schema, method, request, value),
            None if name.starts_with('_') => {}
            None => {
                let expected = match schema {
                    Schema::V1 => "a method of ACP v1, or a name that begins with _",
                    Schema::V2 => "a method of ACP v2, or a name that begins with _",
                };
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
        let spoken = self.spoken;
        let schema = |requester: Option<Side>, method: &str| match method {
            "initialize" => Schema::of_initialize(&value["result"]),
            _ => *requester.map_or(Side::Client, Side::other).of(&spoken),
        };
        let violations = |requester: Option<Side>, method: &str| {
            body(schema(requester, method), envelope.kind, method, value)
        };
        // Without known sides two requests can share the id; the one whose type fits best is taken.
        // Requests of an agent are mostly made, and answered, during one of the client's.
        let requesters = [Some(Side::Agent), Some(Side::Client), None].into_iter();
        let candidates = requesters.filter_map(|requester| {
            let can_ask = to.from.is_none() || requester != to.from;
            let open = self.open.get(table_of(requester))?;
            let open = open.get(id).filter(|_| can_ask)?;
            let method = request_method.unwrap_or(open).to_owned();
            Some((violations(requester, &method), requester, method))
        });
        let best = candidates
            .min_by_key(|(found, ..)| found.len())
            .or_else(|| {
                let method = request_method.filter(|_| id.is_value())?.to_owned();
                let requester = to.from.map(Side::other);
                Some((violations(requester, &method), requester, method))
            });
        let Some((found, requester, method)) = best else {
            // An error without an id reports an unreadable message (JSON-RPC 2.0, §5).
            if is_error {
                to.checked = true;
                to.violations.extend(violations(None, ""));
            }
            let expected = match id.is_value() {
                true if !self.one_sided => "the id of an open request of the other side",
                false if !is_error && envelope.id.is_some() => "the id of an open request",
                _ => return,
            };
            return to.refuse(UnmatchedAnswer, "/id", value, expected);
        };
        let open = self.open.get_mut(table_of(requester));
        open.and_then(|open| open.remove(id));
        to.from = to.from.or_else(|| requester.map(Side::other));
        let schema = schema(requester, &method);
        to.checked = is_error || Method::named(schema, &method).is_some();
        if method == "initialize" && !is_error {
            let client = match self.offers_v2 {
                true => schema,
                false => Schema::V1,
            };
            self.spoken = [client, schema];
        }
        to.violations.extend(found);
        to.method = Some(method);
    }
}

/// The place of a side's requests in [`Checker::open`].
fn table_of(requester: Option<Side>) -> usize {
    requester.map_or(2, |side| side as usize)
}

/// The violations in the result or the error of an answer.
fn body(schema: Schema, kind: Kind, method: &str, value: &Value) -> Vec<Violation> {
    let walk = |member| Validator::at(schema, member);
    let method = Method::named(schema, method);
    match (kind, method.and_then(|method| method.result)) {
        // It could not be parsed, which was reported.
        _ if value.is_null() => Vec::new(),
        (Kind::Error, _) => walk("/error").definition(&value["error"], "Error"),
        (_, Some(definition)) => walk("/result").definition(&value["result"], definition),
        (_, None) => Vec::new(),
    }
}

/// Whether the params of `initialize` are for readers of either version.
fn is_hybrid(params: &Value) -> bool {
    let has = |name: &str| params[name].is_object();
    has("info") && (has("clientInfo") || has("clientCapabilities"))
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
        let head = message.as_bytes().get(..400).unwrap_or(message.as_bytes());
        let found = Some(truncate(&String::from_utf8_lossy(head)));
        let violation = Violation::refused(kind, "", None, expected);
        self.violations.push(Violation { found, ..violation });
    }

    /// Checks which side calls, whether with an id, and the params.
    fn params(&mut self, schema: Schema, method: &Method, request: bool, value: &Value) {
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
        let walk = Validator::at(schema, "/params");
        match value.get("params") {
            // The schema lets params be null, and JSON-RPC lets them be left out.
            None | Some(Value::Null) if walk.optional(definition) || value.is_null() => {}
            None => {
                let expected = format!("an object ({definition})");
                self.refuse(MissingMember, "/params", value, &expected);
            }
            Some(params) => {
                let mut found = walk.definition(params, definition);
                if definition == "InitializeRequest" && is_hybrid(params) {
                    // What one version does not name, the other does.
                    let other = Validator::at(schema.other(), "/params");
                    let other = other.definition(params, definition);
                    let unnamed = |at: &str| {
                        let mut unknown = other.iter().filter(|of| of.kind == UnknownMember);
                        unknown.any(|of| at.starts_with(&of.pointer))
                    };
                    found.retain(|one| one.kind != UnknownMember || unnamed(&one.pointer));
                }
                self.violations.extend(found);
            }
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
                let found = Validator::at(Schema::V1, "/id").definition(id, "RequestId");
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
