//! The original protocol (0.0.x), in which everything is a request and there is only one session.
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

use super::state::WAITING;
use crate::convert::text_block;
use crate::message::Message;
use crate::object::object;
use crate::pending::{PendingRequest, Purpose};
use crate::step::Step;
use crate::table::Way;
use crate::text;
use crate::translation::{DialectEvent, Forward, Translation};
use crate::translator::Translator;
use crate::tree::Node;
use jsonrpc::{Frame, Kind, Limits, Scanned, scan};

/// Answers to a client that asks for a session too early, or for a second one.
const AUTH_REQUIRED: &[u8] = br#"{"code":-32000,"message":"Authentication required"}"#;
const ONE_SESSION: &[u8] = br#"{"code":-32600,"message":"this agent holds one session only, and it is open; start another agent for a second one"}"#;

impl Translator {
    pub(super) fn number_tool_call(&mut self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        const CALL: &str = "/update/toolCallId";
        if step.way == Way::Read {
            self.actions.last += 1;
            let number = self.actions.last.to_string();
            message.set_text(CALL, &number);
            if step.original.kind == Kind::Request {
                self.reply(
                    step,
                    Kind::Result,
                    format!("{{\"id\":{number}}}").as_bytes(),
                );
            }
            return;
        }
        let Some(call) = message.text_at(CALL) else {
            return;
        };
        let is_first = message.text_at("/update/sessionUpdate").as_deref() == Some("tool_call");
        match self.actions.numbers.get(&call) {
            Some(Some(number)) => message.set_text(CALL, number),
            Some(None) if !is_first => {
                let what = match self.actions.queue(step.original.frame(true)) {
                    true => "an update waits for the number of its tool call",
                    false => "an update of a tool call without a number: too many wait",
                };
                step.hold = Some(what.into());
            }
            None if !is_first => {
                step.hold = Some("an update of a tool call that the client does not know".into());
            }
            _ => {
                if self.actions.numbers.insert(&call, None, 0) {
                    step.pending.purpose = Purpose::ToolNumber(call);
                }
            }
        }
    }

    /// The peer has given a number to the tool call of a confirmation.
    pub(super) fn confirmed_number(&mut self, call: &str, number: &str) {
        let numbers = &mut self.actions.numbers;
        if numbers.get(call).is_none() {
            numbers.insert(call, Some(number.to_owned()), number.len());
        }
    }

    pub(super) fn open_session(&mut self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        match (step.way, message.kind) {
            // The agent has answered `initialize` or `authenticate` of a client without sessions.
            (Way::Write, Kind::Result) if !self.actions.session_requested => {
                self.actions.session_requested = true;
                let id = self.new_id();
                let pending = PendingRequest {
                    purpose: Purpose::Session,
                    ..PendingRequest::of("session/new", "session/new")
                };
                self.insert_request(self.peer, id.as_id(), pending);
                let folder = match self.actions.cwd.as_str() {
                    "" => "/",
                    known => known,
                };
                let body = object! { "cwd": folder, "mcpServers": Vec::new() };
                let made = Message::new(Kind::Request, id, "session/new", body);
                step.out.replies.push(made.frame(true));
            }
            (Way::Read, Kind::Result) => {
                self.actions.signed_out = message.get("/authMethods/0").is_some();
            }
            (Way::Write, Kind::Request) if *message.method == *"session/new" => {
                if self.actions.signed_out {
                    step.refuse = Some(AUTH_REQUIRED.into());
                } else if self.actions.has_session {
                    step.refuse = Some(ONE_SESSION.into());
                }
                self.actions.has_session |= !self.actions.signed_out;
            }
            (Way::Read, Kind::Request) if !self.actions.has_session => {
                if !self.actions.session_requested {
                    step.refuse = self.actions.session_error.clone();
                    return;
                }
                if self.actions.prompts.len() < WAITING {
                    self.actions.prompts.push(step.original.frame(true));
                }
                step.hold = Some("a prompt waits for its session".into());
            }
            _ => {}
        }
    }

    /// Prepares a text for the user where an answer has no member for its stop reason.
    pub(super) fn explain_stop(&mut self, message: &Message<'_>, step: &Step<'_, '_>) {
        let words = match message.text_at("/stopReason").as_deref() {
            Some("refusal") => "[The agent refuses to go on with this.]",
            Some("max_tokens") => "[The agent stopped: the limit of tokens is reached.]",
            Some("max_turn_requests") => {
                "[The agent stopped: the limit of requests in one turn is reached.]"
            }
            _ => return,
        };
        let session = step.pending.session.clone();
        self.actions.stop_notice = session.map(|session| (session, words));
    }

    /// Sends the notice of `explain_stop` before the answer that was written.
    pub(crate) fn send_stop_notice(&mut self, frame: &Frame, out: &mut Translation) {
        let Some((session, words)) = self.actions.stop_notice.take() else {
            return;
        };
        let update =
            object! { "sessionUpdate": "agent_message_chunk", "content": text_block(words) };
        let made = Message::update(Node::string(&session), update).frame(true);
        if let Scanned::Message(at) = scan(&made, &Limits::default()) {
            let notice = self.translate(Way::Write, &made, &at);
            let mut frames = notice.frames(&made);
            frames.extend(out.frames(frame));
            out.forward = Forward::Frames(frames);
            out.fired.extend(notice.fired);
            out.notes.extend(notice.notes);
        }
    }

    /// The peer has answered with the number of a tool call: what waited for it is written, in
    /// order, until a message has to wait again.
    pub(crate) fn receive_tool_number(
        &mut self,
        call: &str,
        message: &Message<'_>,
        out: &mut Translation,
    ) {
        let json = message.body.json();
        match text::member(&json, "id").map(String::from_utf8_lossy) {
            Some(number) => {
                let number = number.into_owned();
                let size = number.len();
                self.actions.numbers.insert(call, Some(number), size);
            }
            None => {
                self.actions.numbers.remove(call);
            }
        }
        out.note(DialectEvent::Swallowed, None, "the number of a tool call");
        let mut waiting = std::mem::take(&mut self.actions.waiting);
        self.actions.waiting_bytes = 0;
        let mut replies = Vec::new();
        while self.actions.waiting.is_empty()
            && let Some(frame) = waiting.pop_front()
        {
            if let Scanned::Message(at) = scan(&frame, &Limits::default()) {
                let mut done = self.write(&frame, &at);
                out.fired.append(&mut done.fired);
                collect(done, &frame, &mut replies, out);
            }
        }
        for frame in waiting {
            self.actions.queue(frame);
        }
        out.forward = Forward::Frames(replies);
    }

    /// Queues a frame behind an update that waits; `false` when nothing waits.
    pub(crate) fn queue_behind(&mut self, frame: &Frame, out: &mut Translation) -> bool {
        if self.actions.waiting.is_empty() || !self.actions.queue(frame.clone()) {
            return false;
        }
        let why = "it is queued behind a waiting message";
        out.note(DialectEvent::Held, None, why);
        out.forward = Forward::Frames(Vec::new());
        true
    }

    /// The agent has answered the bridge's own `session/new`.
    pub(crate) fn session_opened(&mut self, message: &Message<'_>, out: &mut Translation) {
        let what = "the session of a client without sessions";
        out.note(DialectEvent::Swallowed, None, what);
        if message.kind == Kind::Error {
            // It is requested again after `authenticate`.
            self.actions.session_requested = false;
            self.actions.session_error = Some(message.body.json().into_owned());
        } else {
            self.actions.has_session = true;
            let from = self.peer.other();
            self.sessions
                .track(from, Kind::Result, "session/new", None, &message.body);
        }
        let mut replies = Vec::new();
        for frame in std::mem::take(&mut self.actions.prompts) {
            if let Scanned::Message(at) = scan(&frame, &Limits::default()) {
                let done = self.read(&frame, &at);
                collect(done, &frame, &mut replies, out);
            }
        }
        out.forward = Forward::Frames(replies);
    }
}

/// Adds the result for a message that has waited: its replies go to the side that `out` forwards
/// to, and it itself to the other side.
fn collect(done: Translation, frame: &Frame, replies: &mut Vec<Frame>, out: &mut Translation) {
    out.replies.extend(done.frames(frame));
    replies.extend(done.replies);
    out.notes.extend(done.notes);
}
