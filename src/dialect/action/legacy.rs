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

use super::context::ActionContext;
use super::state::{NUMBERED, WAITING};
use crate::dialect::message::{self, Message};
use crate::dialect::pending::{PendingRequest, Purpose};
use crate::dialect::pointer::own_pointer;
use crate::dialect::table::Way;
use crate::dialect::translation::Translation;
use crate::dialect::translator::Translator;
use crate::dialect::tree::Node;
use crate::jsonrpc::Kind;

/// Answers to a client that asks for a session too early, or for a second one.
const AUTH_REQUIRED: &[u8] = br#"{"code":-32000,"message":"Authentication required"}"#;
const ONE_SESSION: &[u8] = br#"{"code":-32600,"message":"this agent holds one session only, and it is open; start another agent for a second one"}"#;

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
            message.set("/update/toolCallId", Node::string(&number));
            let value = format!("{{\"id\":{number}}}");
            if context.original.kind == Kind::Request {
                let jsonrpc = self.answers_jsonrpc(Way::Read);
                let id = context.original.id.as_id();
                out.replies
                    .push(message::answer(id, "result", value.as_bytes(), jsonrpc));
            }
            return;
        }
        let at = own_pointer("/update/toolCallId");
        let Some(call) = message.body.text_at(&at) else {
            return;
        };
        let first = message.text_at("/update/sessionUpdate").as_deref() == Some("tool_call");
        match self.legacy.numbers.get(&call) {
            Some(Some(number)) => {
                let number = Node::string(number);
                message.set("/update/toolCallId", number);
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
                let methods = message.get("/authMethods/0");
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
        let reason = message.text_at("/stopReason");
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
}
