//! Interprets the messages of a conversation whose client may reconnect.
//!
//! Requests are stored until they are answered, sessions and their messages as long as there is
//! room, and ids are mapped from the second connection on. `detached` delivers the messages.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::detached::{AgentRequest, DetachedConversation};
use super::ids::RequestKind;
use jsonrpc::{
    Envelope, Frame, Id, IdBuf, Kind, Scanned, member_range, member_text, named_session, reply,
    scan,
};

impl DetachedConversation {
    /// Takes a message for the client.
    pub(super) fn send(&mut self, mut frame: Frame) {
        let Scanned::Message(at) = self.scanner.scan(&mut frame) else {
            return self.deliver(frame);
        };
        match at.kind {
            Kind::Result | Kind::Error => self.send_answer(frame, &at),
            Kind::Request => {
                let session = session_of(&frame, &at);
                let now = self.client.is_some()
                    && session
                        .as_deref()
                        .is_none_or(|session| self.history.is_opened(session));
                let id = at.id(&frame);
                let request = AgentRequest {
                    session,
                    frame: frame.clone(),
                    is_sent: now,
                };
                // The conversation limits the agent's requests in the same way.
                let _ = self.agent_requests.insert(id, request);
                if now {
                    self.deliver(frame);
                }
            }
            Kind::Notification => {
                let connected = self.client.is_some();
                let session = session_of(&frame, &at);
                let Some(session) = session.filter(|_| at.method(&frame) == "session/update")
                else {
                    return self.deliver(frame);
                };
                let in_turn = self.ids.in_turn(None);
                if self.history.update(&session, &frame, connected, in_turn) {
                    self.deliver(frame);
                }
                if connected && !self.is_away() {
                    self.history.shrink(self.limits.reconnect_bytes);
                }
            }
        }
    }

    /// Takes a message of the client, and returns the one to pass on to the agent; `None` when it
    /// was handled here.
    pub(super) fn receive(&mut self, frame: Frame) -> Option<Frame> {
        let Scanned::Message(at) = scan(&frame, &self.limits) else {
            return Some(frame);
        };
        match at.kind {
            Kind::Request => self.receive_request(frame, &at),
            Kind::Notification if self.connection > 0 => {
                let agent_id = |id: &IdBuf| self.ids.agent_id(self.connection, id);
                Some(with_agent_id(frame, &at, agent_id))
            }
            Kind::Notification => Some(frame),
            Kind::Result | Kind::Error => {
                self.agent_requests.remove(at.id(&frame));
                Some(frame)
            }
        }
    }

    fn receive_request(&mut self, frame: Frame, at: &Envelope) -> Option<Frame> {
        let method = at.method(&frame);
        let session = session_of(&frame, at);
        let what = match (&*method, session) {
            ("initialize", _) => {
                self.initialize.params = at.body(&frame).map(|params| Frame::new(params.to_vec()));
                RequestKind::Initialize
            }
            ("session/new" | "session/fork", _) => RequestKind::NewSession,
            ("session/load" | "session/resume", Some(session)) => {
                let from_start = method == "session/load";
                if self.history.awaits_load(&session)
                    && let Some((frames, load_result)) = self.history.replay(&session, from_start)
                {
                    self.urgent.extend(frames);
                    let result = self.with_turn(&session, load_result.as_bytes());
                    let answer = reply::answer(at.id(&frame), "result", &result);
                    self.urgent.push_back(answer);
                    self.queue_agent_requests(Some(&session));
                    return None;
                }
                self.history.reload(&session);
                RequestKind::OldSession(session)
            }
            ("session/close" | "session/delete", Some(session)) => {
                RequestKind::EndOfSession(session)
            }
            ("session/prompt", Some(session)) => {
                self.history.prompt(&session, &frame, at);
                RequestKind::Prompt(session)
            }
            _ => RequestKind::Other,
        };
        let agent_id = self.ids.add(self.connection, at.id(&frame), what);
        Some(if self.connection == 0 {
            frame
        } else {
            at.with_id(&frame, agent_id.as_id())
        })
    }

    /// The answer that gives a client its session again, with what has become of the turn meanwhile.
    fn with_turn(&self, session: &str, body: &[u8]) -> Vec<u8> {
        let requests = self.agent_requests.iter();
        let open = requests.filter(|(_, one)| one.session.as_deref() == Some(session));
        let open = open.count();
        let mut turn = json!({ "turn": "running", "openRequests": open });
        if !self.ids.in_turn(Some(session)) {
            turn["turn"] = "idle".into();
            if let Some((reason, ended)) = self.history.turn_end(session) {
                if let Some(reason) = reason {
                    turn["stopReason"] = reason.into();
                }
                let ended = ended.elapsed().as_millis();
                turn["endedMs"] = u64::try_from(ended).unwrap_or(u64::MAX).into();
            }
        }
        with_meta(body, turn).unwrap_or_else(|| body.to_vec())
    }

    fn send_answer(&mut self, mut frame: Frame, at: &Envelope) {
        let Some(open) = self.ids.remove(at.id(&frame)) else {
            return self.deliver(frame);
        };
        if at.kind == Kind::Result {
            match &open.kind {
                RequestKind::Initialize => {
                    self.initialize.answer = at.body(&frame).map(|body| Frame::new(body.to_vec()));
                }
                RequestKind::NewSession => {
                    if let Some(session) = session_of(&frame, at) {
                        let limit = self.limits.reconnect_bytes;
                        self.history.open(&session, &frame, at, limit);
                    }
                }
                RequestKind::OldSession(session) => {
                    let limit = self.limits.reconnect_bytes;
                    let is_known = self.history.has(session);
                    self.history.open(session, &frame, at, limit);
                    self.queue_agent_requests(Some(session));
                    if is_known && self.connection > 0 {
                        let result = self.with_turn(session, at.body(&frame).unwrap_or_default());
                        frame = reply::answer(at.id(&frame), "result", &result);
                    }
                }
                RequestKind::EndOfSession(session) => {
                    self.history.remove(session);
                    // No client can reconnect to it.
                    let ended = Some(session.as_str());
                    self.agent_requests
                        .retain(|_, request| request.session.as_deref() != ended);
                }
                RequestKind::Prompt(_) | RequestKind::Other => {}
            }
        }
        if let RequestKind::Prompt(session) = &open.kind {
            let reason = at
                .body(&frame)
                .and_then(|body| member_text(body, "stopReason"));
            self.history.end_turn(session, reason.as_deref());
        }
        if let (Kind::Error, RequestKind::OldSession(session)) = (at.kind, &open.kind) {
            self.history.load_failed(session);
        }
        let is_answered = |id: &mut IdBuf| open.connection == 0 && *id == open.id;
        if self.answered.take_if(is_answered).is_some() {
            return;
        }
        if open.connection != self.connection || self.client.is_none() {
            let (id, session) = (open.id.as_id(), &open.kind);
            tracing::info!(%id, ?session, "dropped an answer to a request of an earlier connection");
            if let RequestKind::Prompt(session) = &open.kind
                && self.wants_status
                && self.client.is_some()
            {
                let end = self.history.turn_end(session);
                let reason = end.and_then(|(reason, _)| reason);
                self.deliver(reply::turn_ended(session, reason));
            }
            return;
        }
        self.deliver(if open.connection == 0 {
            frame
        } else {
            at.with_id(&frame, open.id.as_id())
        });
    }
}

/// The body of an answer with a member in its `_meta`.
fn with_meta(body: &[u8], meta: Value) -> Option<Vec<u8>> {
    let mut result: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let all = result.entry("_meta").or_insert(Value::Null);
    if !all.is_object() {
        *all = json!({});
    }
    all["acp-relay"] = meta;
    serde_json::to_vec(&result).ok()
}

fn session_of(frame: &Frame, at: &Envelope) -> Option<String> {
    named_session(frame, at).map(Cow::into_owned)
}

/// Maps the id in a notification about a request to the one that the agent knows; returns other
/// notifications unchanged. `agent_id` maps the client's id to the agent's.
fn with_agent_id<'a>(
    frame: Frame,
    at: &Envelope,
    agent_id: impl Fn(&IdBuf) -> Option<&'a IdBuf>,
) -> Frame {
    if at.method(&frame) != "$/cancel_request" {
        return frame;
    }
    let body = at.body(&frame).unwrap_or_default();
    let Some(place) = member_range(body, "requestId") else {
        return frame;
    };
    let id = Id::of_json(&body[place.clone()]).to_owned();
    let Some(agent_id) = agent_id(&id) else {
        return frame;
    };
    Frame::new(
        [
            br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":"#,
            &body[..place.start],
            agent_id.as_id().json(),
            &body[place.end..],
            b"}",
        ]
        .concat(),
    )
}
