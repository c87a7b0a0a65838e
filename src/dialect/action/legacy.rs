//! Actions for the original protocol (0.0.x), in which everything is a request and there is only
//! one session.
//!
//! - `number_tool_call`: tool calls get numbers. Reading, the bridge counts and answers with the
//!   number; writing, the client counts, and updates wait until it has answered.
//! - `open_session`: a client without sessions gets one: the bridge opens it after `initialize`,
//!   and prompts wait for it. An agent without sessions has one: a client may open it once, and
//!   only after the user has signed in. If the session was refused, prompts are answered with that
//!   error.
//! - A stop reason is sent as text where the answer has no member for it.
//!
//! `confirm` handles confirmations.

use std::collections::{HashMap, VecDeque};

use super::run::{ActionContext, pointer, set};
use crate::dialect::message::{self, Message};
use crate::dialect::pending::{PendingRequest, Purpose};
use crate::dialect::table::Way;
use crate::dialect::text;
use crate::dialect::translation::{DialectEvent, Forward, Translation};
use crate::dialect::translator::Translator;
use crate::dialect::tree::Node;
use crate::jsonrpc::{Frame, IdBuf, Kind, Limits, Scanned, scan};

/// Maximum number of numbered tool calls, of waiting messages, and of their bytes.
const NUMBERED: usize = 4096;
const WAITING: usize = 1024;
const WAITING_BYTES: usize = 1 << 20;

/// Answers to a client that asks for a session too early, or for a second one.
const AUTH_REQUIRED: &[u8] = br#"{"code":-32000,"message":"Authentication required"}"#;
const ONE_SESSION: &[u8] = br#"{"code":-32600,"message":"this agent holds one session only, and it is open; start another agent for a second one"}"#;

/// What the actions of the original protocol remember.
#[derive(Debug, Default)]
pub(in crate::dialect) struct Legacy {
    /// The last number given to a tool call by the bridge.
    pub(super) last: u32,
    /// The numbers of canonical tool calls; `None` until the client has answered.
    pub(super) numbers: HashMap<String, Option<String>>,
    /// An update that waits for the number of its tool call, and all messages after it.
    waiting: VecDeque<Frame>,
    waiting_bytes: usize,
    /// Whether a session was requested.
    session_requested: bool,
    /// Whether the session is open.
    has_session: bool,
    /// The error that answered the last request for a session.
    session_error: Option<Box<[u8]>>,
    /// Prompts that wait for the session.
    prompts: Vec<Frame>,
    /// The working directory of the relay, and so of the agent that it starts.
    pub(in crate::dialect) cwd: String,
    /// Whether the agent has reported that the user is not signed in.
    signed_out: bool,
    /// The notice to send before the answer that is being written: the session and the text.
    stop_notice: Option<(String, &'static str)>,
}

impl Legacy {
    /// Whether nothing is queued, and no notice is due.
    pub(in crate::dialect) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.stop_notice.is_none()
    }

    fn queue(&mut self, frame: Frame) {
        self.waiting_bytes += frame.len();
        self.waiting.push_back(frame);
    }
}

impl Translator {
    pub(super) fn number_tool_call<'a>(
        &mut self,
        message: &mut Message<'a>,
        pending: &mut PendingRequest,
        context: &mut ActionContext<'_, 'a>,
        out: &mut Translation,
    ) {
        if context.way == Way::Read {
            self.legacy.last += 1;
            let number = self.legacy.last.to_string();
            set(message, "/update/toolCallId", Node::string(&number));
            let value = format!("{{\"id\":{number}}}");
            if context.original.kind == Kind::Request {
                let jsonrpc = self.answers_jsonrpc(Way::Read) && self.peer_wants_jsonrpc();
                let id = context.original.id.as_id();
                out.replies
                    .push(message::answer(id, "result", value.as_bytes(), jsonrpc));
            }
            return;
        }
        let at = pointer("/update/toolCallId");
        let Some(call) = message.body.text_at(&at) else {
            return;
        };
        let first = message
            .body
            .text_at(&pointer("/update/sessionUpdate"))
            .as_deref()
            == Some("tool_call");
        match self.legacy.numbers.get(&call) {
            Some(Some(number)) => {
                let number = Node::string(number);
                set(message, "/update/toolCallId", number);
            }
            Some(None) if !first => {
                self.legacy.queue(context.original.frame(true));
                context.hold = Some("an update waits for the number of its tool call".into());
            }
            None if !first => {
                context.hold =
                    Some("an update of a tool call that the client does not know".into());
            }
            _ => {
                if first && self.legacy.numbers.len() < NUMBERED {
                    self.legacy.numbers.insert(call.clone(), None);
                    pending.purpose = Purpose::ToolNumber(call);
                }
            }
        }
    }

    /// The peer has answered with the number of a tool call: what waited for it is written.
    pub(in crate::dialect) fn receive_tool_number(
        &mut self,
        call: &str,
        message: &Message<'_>,
        out: &mut Translation,
    ) {
        let json = message.body.json();
        let number = text::member(&json, "id").map(|id| String::from_utf8_lossy(id).into_owned());
        match number {
            Some(number) => {
                self.legacy.numbers.insert(call.to_owned(), Some(number));
            }
            None => {
                self.legacy.numbers.remove(call);
            }
        }
        out.note(DialectEvent::Swallowed, None, "the number of a tool call");
        self.release(out);
    }

    /// Queues a frame behind an update that waits; `false` when nothing waits.
    pub(in crate::dialect) fn queue_behind(
        &mut self,
        frame: &Frame,
        out: &mut Translation,
    ) -> bool {
        let legacy = &mut self.legacy;
        let has_room = legacy.waiting_bytes < WAITING_BYTES && legacy.waiting.len() < WAITING;
        if legacy.waiting.is_empty() || !has_room {
            return false;
        }
        legacy.queue(frame.clone());
        out.note(
            DialectEvent::Held,
            None,
            "it is queued behind a waiting message",
        );
        out.forward = Forward::Frames(Vec::new());
        true
    }

    /// Writes the queued frames, in order, until one of them has to wait again.
    fn release(&mut self, out: &mut Translation) {
        let mut waiting = std::mem::take(&mut self.legacy.waiting);
        self.legacy.waiting_bytes = 0;
        let mut replies = Vec::new();
        while self.legacy.waiting.is_empty() {
            let Some(frame) = waiting.pop_front() else {
                break;
            };
            if let Scanned::Message(at) = scan(&frame, &Limits::default()) {
                let done = self.write(&frame, &at);
                out.replies.extend(done.frames(&frame));
                replies.extend(done.replies);
                out.fired.extend(done.fired);
                out.notes.extend(done.notes);
            }
        }
        for frame in waiting {
            self.legacy.queue(frame);
        }
        out.forward = Forward::Frames(replies);
    }

    /// The peer has given a number to the tool call of a confirmation.
    pub(super) fn confirmed_number(&mut self, call: &str, number: &str) {
        let numbers = &mut self.legacy.numbers;
        if numbers.len() < NUMBERED && !numbers.contains_key(call) {
            numbers.insert(call.to_owned(), Some(number.to_owned()));
        }
    }

    pub(super) fn open_session<'a>(
        &mut self,
        message: &mut Message<'a>,
        context: &mut ActionContext<'_, 'a>,
        out: &mut Translation,
    ) {
        match (context.way, message.kind) {
            // The agent has answered `initialize` or `authenticate` of a client without sessions.
            (Way::Write, Kind::Result) if !self.legacy.session_requested => {
                self.legacy.session_requested = true;
                let id = self.new_id();
                let pending = PendingRequest {
                    dialect: "session/new".into(),
                    canonical: "session/new".into(),
                    purpose: Purpose::Session,
                    ..PendingRequest::default()
                };
                self.requests(self.peer).insert(id.clone(), pending);
                let folder = match self.legacy.cwd.as_str() {
                    "" => "/",
                    known => known,
                };
                let body = Node::object(vec![
                    ("cwd", Node::string(folder)),
                    ("mcpServers", Node::Array(Vec::new())),
                ]);
                let made = Message::new(Kind::Request, id, "session/new", body);
                out.replies.push(made.frame(true));
            }
            (Way::Read, Kind::Result) => {
                let methods = message.body.get(&pointer("/authMethods/0"));
                self.legacy.signed_out = methods.is_some();
            }
            (Way::Write, Kind::Request) if *message.method == *"session/new" => {
                if self.legacy.signed_out {
                    context.refuse = Some(AUTH_REQUIRED.into());
                } else if self.legacy.has_session {
                    context.refuse = Some(ONE_SESSION.into());
                }
                self.legacy.has_session |= !self.legacy.signed_out;
            }
            (Way::Read, Kind::Request)
                if self.legacy.session_requested && !self.legacy.has_session =>
            {
                if self.legacy.prompts.len() < WAITING {
                    self.legacy.prompts.push(context.original.frame(true));
                }
                context.hold = Some("a prompt waits for its session".into());
            }
            (Way::Read, Kind::Request) if !self.legacy.has_session => {
                context.refuse = self.legacy.session_error.clone();
            }
            _ => {}
        }
    }

    /// Prepares a text for the user where an answer has no member for its stop reason.
    pub(super) fn explain_stop(&mut self, message: &Message<'_>, pending: &PendingRequest) {
        let reason = message.body.text_at(&pointer("/stopReason"));
        let words = match reason.as_deref() {
            Some("refusal") => "[The agent refuses to go on with this.]",
            Some("max_tokens") => "[The agent stopped: the limit of tokens is reached.]",
            Some("max_turn_requests") => {
                "[The agent stopped: the limit of requests in one turn is reached.]"
            }
            _ => return,
        };
        let session = pending.session.clone();
        self.legacy.stop_notice = session.map(|session| (session, words));
    }

    /// Sends the notice of `explain_stop` before the answer that was written.
    pub(in crate::dialect) fn send_stop_notice(&mut self, frame: &Frame, out: &mut Translation) {
        let Some((session, words)) = self.legacy.stop_notice.take() else {
            return;
        };
        let content = vec![
            ("type", Node::string("text")),
            ("text", Node::string(words)),
        ];
        let update = vec![
            ("sessionUpdate", Node::string("agent_message_chunk")),
            ("content", Node::object(content)),
        ];
        let body = Node::object(vec![
            ("sessionId", Node::string(&session)),
            ("update", Node::object(update)),
        ]);
        let made = Message::new(Kind::Notification, IdBuf::Absent, "session/update", body);
        let made = made.frame(true);
        if let Scanned::Message(at) = scan(&made, &Limits::default()) {
            let notice = self.translate(Way::Write, &made, &at);
            let mut frames = notice.frames(&made);
            frames.extend(out.frames(frame));
            out.forward = Forward::Frames(frames);
            out.fired.extend(notice.fired);
            out.notes.extend(notice.notes);
        }
    }

    /// The agent has answered the bridge's own `session/new`.
    pub(in crate::dialect) fn session_opened(
        &mut self,
        message: &Message<'_>,
        out: &mut Translation,
    ) {
        out.note(
            DialectEvent::Swallowed,
            None,
            "the session of a client without sessions",
        );
        if message.kind == Kind::Error {
            // It is requested again after `authenticate`.
            self.legacy.session_requested = false;
            self.legacy.session_error = Some(message.body.json().into());
        } else {
            self.legacy.has_session = true;
            self.sessions.track(
                self.program.tracking,
                self.peer.other(),
                Kind::Result,
                "session/new",
                None,
                &message.body,
            );
        }
        let mut replies = Vec::new();
        for frame in std::mem::take(&mut self.legacy.prompts) {
            if let Scanned::Message(at) = scan(&frame, &Limits::default()) {
                let done = self.read(&frame, &at);
                out.replies.extend(done.frames(&frame));
                replies.extend(done.replies);
                out.notes.extend(done.notes);
            }
        }
        out.forward = Forward::Frames(replies);
    }

    /// Whether answers to the peer carry `jsonrpc`.
    pub(super) const fn peer_wants_jsonrpc(&self) -> bool {
        true
    }
}
