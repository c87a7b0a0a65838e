//! Actions for turns, tool calls and refusals of single peers.
//!
//! - `cancelled_turn`: `end_turn` of a turn that was cancelled is `cancelled`.
//! - `fail_turn`: a result that reports a failed turn becomes error −32603, with the result as its
//!   data.
//! - `announce_tool_call`: an update of a tool call, or a permission request for one, that has not
//!   been announced is preceded by a `tool_call` made from it.
//! - `begin_tool_call`: the first update of a tool call is its `tool_call`.
//! - `deny_with_option`: `cancelled` as the answer to a permission request, while the turn is not
//!   cancelled, is the reject option that was offered, if there is one.
//! - `accept_unsupported`: error −32601 becomes an empty result, where the peer does not need the
//!   request to be carried out.
//! - `missing_session`: the error of a request for an unknown session contains the session's id.

use super::context::ActionContext;
use crate::dialect::message::Message;
use crate::dialect::pending::PendingRequest;
use crate::dialect::permission::PermissionAnswer;
use crate::dialect::text::{self, JsonType};
use crate::dialect::translation::{DialectEvent, Translation};
use crate::dialect::translator::{PERMISSION, Translator};
use crate::dialect::tree::Node;
use crate::jsonrpc::Kind;

impl Translator {
    pub(super) fn cancelled_turn(&self, message: &mut Message<'_>, pending: &PendingRequest) {
        let ended = message.text_at("/stopReason").as_deref() == Some("end_turn");
        if ended && self.was_cancelled(pending) {
            message.set("/stopReason", Node::raw(b"\"cancelled\""));
        }
    }

    pub(super) fn was_cancelled(&self, pending: &PendingRequest) -> bool {
        let session = self.session(pending);
        session.is_some_and(|session| session.cancelled)
    }

    pub(super) fn announce_tool_call<'a>(
        &mut self,
        message: &mut Message<'a>,
        context: &mut ActionContext<'_, 'a>,
    ) {
        let call_at = match message.kind {
            Kind::Notification => "/update",
            Kind::Request => "/toolCall",
            _ => return,
        };
        let text_at = |at: &str| message.text_at(at);
        let session = text_at("/sessionId");
        let call = text_at(&format!("{call_at}/toolCallId"));
        let (Some(session), Some(call)) = (session, call) else {
            return;
        };
        let announced = text_at("/update/sessionUpdate").as_deref() == Some("tool_call");
        if !self.action_state.announce(&session, &call) || announced {
            return;
        }
        let title = text_at(&format!("{call_at}/title"))
            .or_else(|| text_at(&format!("{call_at}/kind")))
            .unwrap_or_else(|| "Tool call".into());
        let Some(known) = message.get(call_at) else {
            return;
        };
        let known = known.json().into_owned();
        let mut made = Node::object(vec![
            ("sessionUpdate", Node::raw(b"\"tool_call\"")),
            ("toolCallId", Node::string(&call)),
            ("title", Node::string(&title)),
        ]);
        for (raw, value) in text::members(&known) {
            let Some(name) = text::unescape(raw) else {
                continue;
            };
            let named = ["sessionUpdate", "toolCallId", "title"].contains(&&*name);
            if !named && JsonType::of(value) != JsonType::Null {
                // The update is an object, so `put` cannot be blocked.
                let _ = made.put(&[Box::from(&*name)], Node::owned(value.to_vec()));
            }
        }
        context
            .before
            .push(Message::update(Node::string(&session), made));
    }

    pub(super) fn begin_tool_call(&mut self, message: &mut Message<'_>) {
        let text_at = |at: &str| message.text_at(at);
        let session = text_at("/sessionId");
        let call = text_at("/update/toolCallId");
        let (Some(session), Some(call)) = (session, call) else {
            return;
        };
        if !self.action_state.announce(&session, &call) {
            return;
        }
        let kind = text_at("/update/kind").unwrap_or_else(|| "Tool call".into());
        if text_at("/update/title").is_none() {
            message.set("/update/title", Node::string(&kind));
        }
        message.set("/update/sessionUpdate", Node::string("tool_call"));
    }

    pub(super) fn deny_with_option(
        &self,
        message: &mut Message<'_>,
        pending: &PendingRequest,
        out: &mut Translation,
    ) {
        let denied = PermissionAnswer::read(&message.body.json()) == PermissionAnswer::Cancelled;
        if message.kind != Kind::Result
            || &*pending.canonical != PERMISSION
            || !denied
            || self.was_cancelled(pending)
        {
            return;
        }
        let closed = pending.offered.clone().unwrap_or_default().refusal();
        if let PermissionAnswer::Selected(id) = &closed {
            out.note(
                DialectEvent::Permission,
                None,
                format!("a denial that was sent as cancelled; `{id}` is answered"),
            );
            let result = closed.result();
            let outcome = text::member(&result, "outcome").unwrap_or_default();
            message.set("/outcome", Node::owned(outcome.to_vec()));
        }
    }
}

pub(super) fn fail_turn(message: &mut Message<'_>) {
    if message.kind != Kind::Result {
        return;
    }
    let text = message.text_at("/message");
    let text = text.unwrap_or_else(|| "the agent says that the turn has failed".into());
    let data = message.body.to_static();
    message.kind = Kind::Error;
    message.body = Node::object(vec![
        ("code", Node::raw(b"-32603")),
        ("message", Node::string(&text)),
        ("data", data),
    ]);
    message.changed = true;
}

pub(super) fn accept_unsupported(message: &mut Message<'_>, out: &mut Translation) {
    let code = message.get("/code");
    let unknown = code.is_some_and(|code| text::equals(b"-32601", &code.json()));
    if message.kind != Kind::Error || !unknown {
        return;
    }
    message.kind = Kind::Result;
    message.body = Node::raw(b"{}");
    message.changed = true;
    out.note(
        DialectEvent::Answered,
        None,
        format!(
            "the peer does not support {} and does not need it",
            message.method
        ),
    );
}

pub(super) fn missing_session(message: &mut Message<'_>, pending: &PendingRequest) {
    let data = message.get("/data").map(|data| data.kind());
    let named = message.get("/data/sessionId").is_some();
    let takes = matches!(data, None | Some(JsonType::Null | JsonType::Object));
    if let Some(session) = pending.session.as_deref().filter(|_| takes && !named) {
        message.set("/data/sessionId", Node::string(session));
    }
}
