//! Follows requests, sessions, turns and tool calls from beginning to end, and makes spans of them.
//! `tracer` calls it for each event.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use opentelemetry::trace::{SpanContext, SpanKind, Status};
use opentelemetry::{KeyValue, Value};

use super::context;
use super::outlet::Outlet;
use super::span::{Birth, Maker, Span};
use crate::conversation::{Gist, Method, Note, Said, Session, ToolStatus, Trail};
use crate::jsonrpc::{IdBuf, Kind, Side};

/// Maximum number of sessions and of tool calls of one conversation with a span at a time. Further
/// ones have none; requests are bounded by `Limits::in_flight`.
const MOST: usize = 256;

/// The peers of a conversation, in words of the relay.
#[derive(Clone, Debug, Default)]
pub struct About {
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
pub(super) struct Story {
    outlet: Outlet,
    maker: Arc<Maker>,
    agent: Option<String>,
    /// The same moment on both clocks.
    began: (Instant, SystemTime),
    last: Instant,
    connection: Option<Span>,
    sessions: Vec<(String, Span)>,
    /// By the number of the request.
    asked: HashMap<u64, Asked>,
    calls: Vec<Call>,
    /// The number of turns that wait for a first update.
    waiting: usize,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct Asked {
    from: Side,
    method: Method,
    id: Option<IdBuf>,
    session: Option<String>,
    number: Session,
    waits: bool,
    span: Span,
}

/// A tool call that is not finished.
#[derive(Debug)]
struct Call {
    /// The turn it belongs to.
    turn: u64,
    id: String,
    span: Span,
}

impl Story {
    /// The spans of a conversation that begins now.
    pub(super) fn begin(outlet: Outlet, maker: Arc<Maker>, about: About, now: Instant) -> Self {
        let wall = SystemTime::now();
        let mut attributes = vec![
            KeyValue::new("network.transport", about.transport),
            KeyValue::new("acp_relay.client", about.client),
        ];
        let named = |name: &'static str, value: &Option<String>| {
            value.clone().map(|value| KeyValue::new(name, value))
        };
        attributes.extend(named("acp_relay.principal", &about.principal));
        attributes.extend(named("gen_ai.agent.name", &about.agent));
        let connection = maker.begin(Birth {
            name: "connection".into(),
            kind: SpanKind::Internal,
            parent: SpanContext::NONE,
            link: None,
            attributes,
            at: wall,
        });
        Self {
            outlet,
            maker,
            agent: about.agent,
            began: (now, wall),
            last: now,
            connection: Some(connection),
            sessions: Vec::new(),
            asked: HashMap::new(),
            calls: Vec::new(),
            waiting: 0,
        }
    }

    /// The trace id of the connection.
    pub(super) fn trace(&self) -> String {
        let own = self.connection.as_ref();
        own.map_or_else(String::new, |own| own.context.trace_id().to_string())
    }

    /// The traceparent to insert into a request that has none: the request's own span.
    pub(super) fn mark(&mut self, gist: &Gist) -> Option<String> {
        if gist.trail.as_ref()?.parent.is_some() {
            return None;
        }
        self.asked(gist);
        let asked = self.asked.get(&gist.topic.ask)?;
        Some(context::mark(&asked.span.context))
    }

    /// Handles a message that was forwarded.
    pub(super) fn passed(&mut self, gist: &Gist) {
        self.last = gist.at;
        match gist.kind {
            Kind::Request => self.asked(gist),
            Kind::Notification => self.updated(gist),
            Kind::Result | Kind::Error => self.answered(gist),
        }
    }

    fn asked(&mut self, gist: &Gist) {
        let number = gist.topic.ask;
        if number == 0 || self.asked.contains_key(&number) {
            return;
        }
        let method = gist.topic.method;
        let nothing = Trail::default();
        let trail = gist.trail.as_deref().unwrap_or(&nothing);
        let session = trail.session.as_deref();
        let within = self.within(gist.from, session);
        let remote = context::parent(trail);
        let (parent, link) = match remote {
            Some(remote) => (remote, Some(within).filter(SpanContext::is_valid)),
            None => (within, None),
        };
        let is_turn = method == Method::SessionPrompt && gist.from == Side::Client;
        let mut attributes = vec![
            KeyValue::new("rpc.system.name", "jsonrpc"),
            KeyValue::new("rpc.method", trail.method.clone()),
            KeyValue::new("acp.from", gist.from.to_string()),
        ];
        let id = trail.id.as_ref().map(shown);
        attributes.extend(id.map(|id| KeyValue::new("jsonrpc.request.id", id)));
        let session_id = session.map(|id| KeyValue::new("gen_ai.conversation.id", id.to_owned()));
        attributes.extend(session_id);
        if is_turn {
            attributes.push(KeyValue::new("gen_ai.operation.name", "invoke_agent"));
            let agent = self.agent.clone();
            attributes.extend(agent.map(|agent| KeyValue::new("gen_ai.agent.name", agent)));
        }
        let span = self.maker.begin(Birth {
            // Names of spans are never taken from a peer.
            name: method.name().into(),
            kind: SpanKind::Server,
            parent,
            link,
            attributes,
            at: self.wall(gist.at),
        });
        self.waiting += usize::from(is_turn);
        let asked = Asked {
            from: gist.from,
            method,
            id: trail.id.clone(),
            session: trail.session.clone(),
            number: gist.topic.session,
            waits: is_turn,
            span,
        };
        self.asked.insert(number, asked);
    }

    /// The parent of a request without a trace context: the turn, the session, or the connection.
    fn within(&self, from: Side, session: Option<&str>) -> SpanContext {
        let same = |asked: &&Asked| asked.is_turn() && asked.session.as_deref() == session;
        let turn = self.asked.values().find(same);
        let turn = turn.filter(|_| from == Side::Agent && session.is_some());
        let visit = || self.sessions.iter().find(|(id, _)| Some(&**id) == session);
        turn.map(|turn| &turn.span)
            .or_else(|| visit().map(|(_, span)| span))
            .or(self.connection.as_ref())
            .map_or(SpanContext::NONE, |span| span.context.clone())
    }

    /// The turn of that session.
    fn turn_of(&self, session: Session) -> Option<u64> {
        let mut turns = self.asked.iter();
        turns
            .find(|(_, asked)| asked.is_turn() && asked.number == session)
            .map(|(number, _)| *number)
    }

    fn updated(&mut self, gist: &Gist) {
        if gist.topic.method != Method::SessionUpdate || gist.from != Side::Agent {
            return;
        }
        let at = self.wall(gist.at);
        if self.waiting > 0 {
            let own = |asked: &&mut Asked| asked.waits && asked.number == gist.topic.session;
            if let Some(turn) = self.asked.values_mut().find(own) {
                turn.waits = false;
                turn.span.happened("first_update", at);
                self.waiting -= 1;
            }
        }
        let call = gist.trail.as_ref().and_then(|trail| trail.call.as_deref());
        let (Some(id), Some(turn)) = (call, self.turn_of(gist.topic.session)) else {
            return;
        };
        let status = match gist.said {
            Said::ToolCalled(kind, status) => {
                self.called(turn, id, kind.name(), at);
                status
            }
            Said::ToolBecame(status) => Some(status),
            _ => None,
        };
        let own = |call: &Call| call.turn == turn && call.id == id;
        let over = matches!(status, Some(ToolStatus::Completed | ToolStatus::Failed));
        if over && let Some(at_call) = self.calls.iter().position(own) {
            let status = match status {
                Some(ToolStatus::Failed) => Status::error("failed"),
                _ => Status::Unset,
            };
            let call = self.calls.swap_remove(at_call);
            self.over(call.span, at, status);
        }
    }

    fn called(&mut self, turn: u64, id: &str, kind: &'static str, at: SystemTime) {
        let known = self
            .calls
            .iter()
            .any(|one| one.turn == turn && one.id == id);
        let Some(parent) = self.asked.get(&turn).filter(|_| !known) else {
            return;
        };
        if self.calls.len() >= MOST {
            return;
        }
        let span = self.maker.begin(Birth {
            name: "execute_tool".into(),
            kind: SpanKind::Internal,
            parent: parent.span.context.clone(),
            link: None,
            attributes: vec![
                KeyValue::new("gen_ai.operation.name", "execute_tool"),
                KeyValue::new("gen_ai.tool.call.id", id.to_owned()),
                KeyValue::new("acp.tool.kind", kind),
            ],
            at,
        });
        let id = id.to_owned();
        self.calls.push(Call { turn, id, span });
    }

    fn answered(&mut self, gist: &Gist) {
        let Some(mut asked) = self.take(gist.topic.ask, gist.at) else {
            return;
        };
        let at = self.wall(gist.at);
        let status = match gist.said {
            Said::Failed(code) => asked.failed(code),
            Said::TurnEnded(reason, _) => {
                asked.span.set("acp.stop_reason", reason.name());
                Status::Unset
            }
            _ => Status::Unset,
        };
        let done = gist.kind == Kind::Result;
        let new = gist.trail.as_ref().and_then(|trail| trail.session.clone());
        match asked.method {
            Method::SessionNew if done => self.opened(new, at),
            Method::SessionLoad | Method::SessionResume if done => {
                self.opened(asked.session.clone(), at);
            }
            Method::SessionClose if done => {
                let own = |(id, _): &(String, Span)| Some(id) == asked.session.as_ref();
                if let Some(place) = self.sessions.iter().position(own) {
                    let (_, span) = self.sessions.swap_remove(place);
                    self.over(span, at, Status::Unset);
                }
            }
            _ => {}
        }
        self.over(asked.span, at, status);
    }

    fn opened(&mut self, session: Option<String>, at: SystemTime) {
        let Some(session) = session else { return };
        let known = self.sessions.iter().any(|(id, _)| *id == session);
        if known || self.sessions.len() >= MOST {
            return;
        }
        let parent = self.connection.as_ref();
        let span = self.maker.begin(Birth {
            name: "session".into(),
            kind: SpanKind::Internal,
            parent: parent.map_or(SpanContext::NONE, |span| span.context.clone()),
            link: None,
            attributes: vec![KeyValue::new("gen_ai.conversation.id", session.clone())],
            at,
        });
        self.sessions.push((session, span));
    }

    /// Removes a request that is answered, and ends the tool calls of its turn.
    fn take(&mut self, number: u64, now: Instant) -> Option<Asked> {
        let asked = self.asked.remove(&number)?;
        self.waiting -= usize::from(asked.waits);
        let at = self.wall(now);
        while let Some(place) = self.calls.iter().position(|call| call.turn == number) {
            let call = self.calls.swap_remove(place);
            self.over(call.span, at, Status::Unset);
        }
        Some(asked)
    }

    /// Ends the span of a request that the relay has answered itself, if the note says so.
    pub(super) fn note(&mut self, note: &Note) {
        let Note::Answered { to, id, code, .. } = note else {
            return;
        };
        let own = |(_, asked): &(&u64, &Asked)| asked.from == *to && asked.id.as_ref() == Some(id);
        let number = self.asked.iter().find(own).map(|(number, _)| *number);
        let Some(mut asked) = number.and_then(|number| self.take(number, self.last)) else {
            return;
        };
        let status = asked.failed(i64::from(*code));
        asked.span.set("acp_relay.answered", true);
        let at = self.wall(self.last);
        self.over(asked.span, at, status);
    }

    fn over(&self, span: Span, at: SystemTime, status: Status) {
        if let Some(span) = span.end(at, status) {
            self.outlet.give(span);
        }
    }

    fn wall(&self, at: Instant) -> SystemTime {
        let (instant, wall) = self.began;
        wall + at.saturating_duration_since(instant)
    }

    /// Notes the name of the reason for which the conversation ended.
    pub(super) fn closed(&mut self, why: &'static str, now: Instant) {
        self.last = now;
        if let Some(own) = &mut self.connection {
            own.set("acp_relay.closed_by", Value::from(why));
        }
    }

    /// Ends all open spans.
    pub(super) fn end(&mut self) {
        let at = self.wall(self.last);
        let numbers: Vec<_> = self.asked.keys().copied().collect();
        for number in numbers {
            if let Some(asked) = self.take(number, self.last) {
                self.over(asked.span, at, Status::error("the conversation is over"));
            }
        }
        for (_, span) in std::mem::take(&mut self.sessions) {
            self.over(span, at, Status::Unset);
        }
        if let Some(span) = self.connection.take() {
            self.over(span, at, Status::Unset);
        }
    }
}

impl Asked {
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
