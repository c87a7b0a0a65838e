//! Follows requests, sessions, turns and tool calls from beginning to end, and makes spans of them.
//! `tracer` calls it for each event.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use opentelemetry::trace::{SpanContext, SpanKind, Status};
use opentelemetry::{KeyValue, Value};

use super::context;
use super::span::{Span, SpanFactory};
use super::span_sender::SpanSender;
use conversation::{Content, MessageSummary, Method, Note, SessionHash, ToolStatus, TraceContext};
use jsonrpc::{IdBuf, Kind, Side};

/// Maximum number of sessions and of tool calls of one conversation with a span at a time. Further
/// ones have none; requests are bounded by `Limits::in_flight`.
const MAX_SPANS: usize = 256;

/// The peers of a conversation, in words of the relay.
#[derive(Clone, Debug, Default)]
pub struct ConversationInfo {
    /// The client, as in the log.
    pub client: String,
    /// The principal of the client, if it connected to a listener.
    pub principal: Option<String>,
    /// The agent's name in the configuration.
    pub agent: Option<String>,
    /// How the client is connected: `pipe`, `unix` or `tcp`.
    pub transport: &'static str,
}

/// The open spans of one conversation.
#[derive(Debug)]
pub(super) struct SpanBuilder {
    sender: SpanSender,
    factory: Arc<SpanFactory>,
    agent: Option<String>,
    /// The same moment on both clocks.
    began: (Instant, SystemTime),
    last: Instant,
    connection: Option<Span>,
    sessions: Vec<(String, Span)>,
    /// In the order in which they were sent.
    requests: Vec<OpenRequest>,
    calls: Vec<ToolCall>,
    /// The number of turns that wait for a first update.
    waiting: usize,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct OpenRequest {
    /// Its number among the requests of the conversation.
    number: u64,
    from: Side,
    method: Method,
    id: Option<IdBuf>,
    session: Option<String>,
    session_hash: SessionHash,
    awaits_update: bool,
    span: Span,
}

/// A tool call that is not finished.
#[derive(Debug)]
struct ToolCall {
    /// The turn it belongs to.
    turn: u64,
    id: String,
    span: Span,
}

impl SpanBuilder {
    /// The spans of a conversation that begins now.
    pub(super) fn begin(
        sender: SpanSender,
        factory: Arc<SpanFactory>,
        info: ConversationInfo,
        now: Instant,
    ) -> Self {
        let wall = SystemTime::now();
        let mut attributes = vec![
            KeyValue::new("network.transport", info.transport),
            KeyValue::new("acp_relay.client", info.client),
        ];
        let named = |name: &'static str, value: &Option<String>| {
            value.clone().map(|value| KeyValue::new(name, value))
        };
        attributes.extend(named("acp_relay.principal", &info.principal));
        attributes.extend(named("gen_ai.agent.name", &info.agent));
        let what = ("connection", SpanKind::Internal);
        let connection = factory.begin(what, &SpanContext::NONE, wall, attributes);
        Self {
            sender,
            factory,
            agent: info.agent,
            began: (now, wall),
            last: now,
            connection: Some(connection),
            sessions: Vec::new(),
            requests: Vec::new(),
            calls: Vec::new(),
            waiting: 0,
        }
    }

    /// The trace id of the connection.
    pub(super) fn trace(&self) -> String {
        let own = self.connection.as_ref();
        own.map_or_else(String::new, |own| own.context().trace_id().to_string())
    }

    /// The traceparent to insert into a request that has none: the request's own span.
    pub(super) fn traceparent(&mut self, message: &MessageSummary) -> Option<String> {
        if message.trace.as_ref()?.parent.is_some() {
            return None;
        }
        self.begin_request(message);
        let request = &self.requests[self.place_of(message.topic.request)?];
        Some(context::traceparent(request.span.context()))
    }

    /// Handles a message that was forwarded.
    pub(super) fn forwarded(&mut self, message: &MessageSummary) {
        self.last = message.at;
        match message.kind {
            Kind::Request => self.begin_request(message),
            Kind::Notification => self.handle_update(message),
            Kind::Result | Kind::Error => self.end_request(message),
        }
    }

    fn begin_request(&mut self, message: &MessageSummary) {
        let number = message.topic.request;
        if number == 0 || self.place_of(number).is_some() {
            return;
        }
        let method = message.topic.method;
        let nothing = TraceContext::default();
        let trace = message.trace.as_deref().unwrap_or(&nothing);
        let session = trace.session.as_deref();
        let within = self.parent_of(message.from, session);
        let remote = context::parent(trace);
        let (parent, link) = match remote {
            Some(remote) => (remote, Some(within).filter(SpanContext::is_valid)),
            None => (within, None),
        };
        let is_turn = method == Method::SessionPrompt && message.from == Side::Client;
        let mut attributes = vec![
            KeyValue::new("rpc.system.name", "jsonrpc"),
            KeyValue::new("rpc.method", trace.method.clone()),
            KeyValue::new("acp.from", message.from.to_string()),
        ];
        let id = trace.id.as_ref().map(shown);
        attributes.extend(id.map(|id| KeyValue::new("jsonrpc.request.id", id)));
        let session_id = session.map(|id| KeyValue::new("gen_ai.conversation.id", id.to_owned()));
        attributes.extend(session_id);
        if is_turn {
            attributes.push(KeyValue::new("gen_ai.operation.name", "invoke_agent"));
            let agent = self.agent.clone();
            attributes.extend(agent.map(|agent| KeyValue::new("gen_ai.agent.name", agent)));
        }
        // Names of spans are never taken from a peer.
        let what = (method.name(), SpanKind::Server);
        let at = self.wall_time(message.at);
        let mut span = self.factory.begin(what, &parent, at, attributes);
        if let Some(link) = link {
            span.add_link(link);
        }
        self.waiting += usize::from(is_turn);
        self.requests.push(OpenRequest {
            number,
            from: message.from,
            method,
            id: trace.id.clone(),
            session: trace.session.clone(),
            session_hash: message.topic.session,
            awaits_update: is_turn,
            span,
        });
    }

    /// The place of an open request in the list.
    fn place_of(&self, number: u64) -> Option<usize> {
        self.requests.iter().rposition(|own| own.number == number)
    }

    /// The parent of a request without a trace context: the turn, the session, or the connection.
    fn parent_of(&self, from: Side, session: Option<&str>) -> SpanContext {
        let same =
            |request: &&OpenRequest| request.is_turn() && request.session.as_deref() == session;
        let turn = self.requests.iter().find(same);
        let turn = turn.filter(|_| from == Side::Agent && session.is_some());
        let own_session = || self.sessions.iter().find(|(id, _)| Some(&**id) == session);
        turn.map(|turn| &turn.span)
            .or_else(|| own_session().map(|(_, span)| span))
            .or(self.connection.as_ref())
            .map_or(SpanContext::NONE, |span| span.context().clone())
    }

    /// The turn of that session.
    fn turn_of(&self, session: SessionHash) -> Option<&OpenRequest> {
        let mut requests = self.requests.iter();
        requests.find(|own| own.is_turn() && own.session_hash == session)
    }

    fn handle_update(&mut self, message: &MessageSummary) {
        if message.topic.method != Method::SessionUpdate || message.from != Side::Agent {
            return;
        }
        let at = self.wall_time(message.at);
        if self.waiting > 0 {
            let own = |request: &&mut OpenRequest| {
                request.awaits_update && request.session_hash == message.topic.session
            };
            if let Some(turn) = self.requests.iter_mut().find(own) {
                turn.awaits_update = false;
                turn.span.add_event("first_update", at);
                self.waiting -= 1;
            }
        }
        let call = message
            .trace
            .as_ref()
            .and_then(|trace| trace.tool_call.as_deref());
        let (Some(id), Some(turn)) = (call, self.turn_of(message.topic.session)) else {
            return;
        };
        let (turn, parent) = (turn.number, turn.span.context().clone());
        let status = match message.content {
            Content::ToolCalled(kind, status) => {
                self.begin_call(turn, &parent, id, kind.name(), at);
                status
            }
            Content::ToolUpdated(status) => Some(status),
            _ => None,
        };
        let own = |call: &ToolCall| call.turn == turn && call.id == id;
        let over = matches!(status, Some(ToolStatus::Completed | ToolStatus::Failed));
        if over && let Some(at_call) = self.calls.iter().position(own) {
            let status = match status {
                Some(ToolStatus::Failed) => Status::error("failed"),
                _ => Status::Unset,
            };
            let call = self.calls.swap_remove(at_call);
            self.send(call.span, at, status);
        }
    }

    fn begin_call(
        &mut self,
        turn: u64,
        parent: &SpanContext,
        id: &str,
        kind: &'static str,
        at: SystemTime,
    ) {
        let mut calls = self.calls.iter();
        if self.calls.len() >= MAX_SPANS || calls.any(|one| one.turn == turn && one.id == id) {
            return;
        }
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.call.id", id.to_owned()),
            KeyValue::new("acp.tool.kind", kind),
        ];
        let what = ("execute_tool", SpanKind::Internal);
        let span = self.factory.begin(what, parent, at, attributes);
        let id = id.to_owned();
        self.calls.push(ToolCall { turn, id, span });
    }

    fn end_request(&mut self, message: &MessageSummary) {
        let place = self.place_of(message.topic.request);
        let Some(mut request) = place.map(|place| self.take_request(place, message.at)) else {
            return;
        };
        let at = self.wall_time(message.at);
        let status = match message.content {
            Content::Failed(code) => request.failed(code),
            Content::TurnEnded(reason, _) => {
                request.span.set("acp.stop_reason", reason.name());
                Status::Unset
            }
            _ => Status::Unset,
        };
        let done = message.kind == Kind::Result;
        let new = message
            .trace
            .as_ref()
            .and_then(|trace| trace.session.clone());
        match request.method {
            Method::SessionNew if done => self.begin_session(new, at),
            Method::SessionLoad | Method::SessionResume if done => {
                self.begin_session(request.session.clone(), at);
            }
            Method::SessionClose if done => {
                let own = |(id, _): &(String, Span)| Some(id) == request.session.as_ref();
                if let Some(place) = self.sessions.iter().position(own) {
                    let (_, span) = self.sessions.swap_remove(place);
                    self.send(span, at, Status::Unset);
                }
            }
            _ => {}
        }
        self.send(request.span, at, status);
    }

    fn begin_session(&mut self, session: Option<String>, at: SystemTime) {
        let Some(session) = session else { return };
        let known = self.sessions.iter().any(|(id, _)| *id == session);
        if known || self.sessions.len() >= MAX_SPANS {
            return;
        }
        let connection = self.connection.as_ref();
        let parent = connection.map_or(&SpanContext::NONE, Span::context);
        let attributes = vec![KeyValue::new("gen_ai.conversation.id", session.clone())];
        let what = ("session", SpanKind::Internal);
        let span = self.factory.begin(what, parent, at, attributes);
        self.sessions.push((session, span));
    }

    /// Removes a request that is answered, and ends the tool calls of its turn.
    fn take_request(&mut self, place: usize, now: Instant) -> OpenRequest {
        let request = self.requests.remove(place);
        self.waiting -= usize::from(request.awaits_update);
        let at = self.wall_time(now);
        let own = |call: &mut ToolCall| call.turn == request.number;
        for call in self.calls.extract_if(.., own).collect::<Vec<_>>() {
            self.send(call.span, at, Status::Unset);
        }
        request
    }

    /// Ends the span of a request that the relay has answered itself, if the note reports that.
    pub(super) fn note(&mut self, note: &Note) {
        let Note::Answered { to, id, code, .. } = note else {
            return;
        };
        let own = |request: &OpenRequest| request.from == *to && request.id.as_ref() == Some(id);
        let place = self.requests.iter().position(own);
        let Some(mut request) = place.map(|place| self.take_request(place, self.last)) else {
            return;
        };
        let status = request.failed(i64::from(*code));
        request.span.set("acp_relay.answered", true);
        let at = self.wall_time(self.last);
        self.send(request.span, at, status);
    }

    fn send(&self, span: Span, at: SystemTime, status: Status) {
        if let Some(span) = span.end(at, status) {
            self.sender.send(span);
        }
    }

    fn wall_time(&self, at: Instant) -> SystemTime {
        let (instant, wall) = self.began;
        wall + at.saturating_duration_since(instant)
    }

    /// Notes the name of the reason for which the conversation ended.
    pub(super) fn set_closed_by(&mut self, why: &'static str, now: Instant) {
        self.last = now;
        if let Some(own) = &mut self.connection {
            own.set("acp_relay.closed_by", Value::from(why));
        }
    }

    /// Ends all open spans.
    pub(super) fn end(&mut self) {
        let at = self.wall_time(self.last);
        while !self.requests.is_empty() {
            let request = self.take_request(0, self.last);
            self.send(request.span, at, Status::error("the conversation is over"));
        }
        for (_, span) in std::mem::take(&mut self.sessions) {
            self.send(span, at, Status::Unset);
        }
        if let Some(span) = self.connection.take() {
            self.send(span, at, Status::Unset);
        }
    }
}

impl OpenRequest {
    /// Whether it is the turn of a session.
    fn is_turn(&self) -> bool {
        self.method == Method::SessionPrompt && self.from == Side::Client
    }

    fn failed(&mut self, code: i64) -> Status {
        self.span.set("rpc.response.status_code", code.to_string());
        self.span.set("error.type", code.to_string());
        Status::error("")
    }
}

/// An id for a trace, cut to 64 characters.
fn shown(id: &IdBuf) -> String {
    id.as_id().to_string().chars().take(64).collect()
}
