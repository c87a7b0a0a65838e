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

use crate::message::Message;
use crate::object::object;
use crate::pending::PendingRequest;
use crate::permission::PermissionAnswer;
use crate::step::Step;
use crate::text::{self, JsonType};
use crate::translation::DialectEvent;
use crate::translator::{PERMISSION, Translator};
use crate::tree::Node;
use jsonrpc::Kind;

impl Translator {
    pub(super) fn cancelled_turn(&self, message: &mut Message<'_>, step: &Step<'_, '_>) {
        let has_ended = message.text_at("/stopReason").as_deref() == Some("end_turn");
        if has_ended && self.was_cancelled(step.pending) {
            message.set_text("/stopReason", "cancelled");
        }
    }

    pub(super) fn was_cancelled(&self, pending: &PendingRequest) -> bool {
        let session = self.session(pending);
        session.is_some_and(|session| session.cancelled)
    }

    pub(super) fn announce_tool_call(&mut self, message: &Message<'_>, step: &mut Step<'_, '_>) {
        let call_at = match message.kind {
            Kind::Notification => "/update",
            Kind::Request => "/toolCall",
            _ => return,
        };
        let text_at = |at: &str| message.text_at(at);
        let session = message.session();
        let call = text_at(&format!("{call_at}/toolCallId"));
        let (Some(session), Some(call)) = (session, call) else {
            return;
        };
        let announced = text_at("/update/sessionUpdate").as_deref() == Some("tool_call");
        if !self.actions.announce(&session, &call) || announced {
            return;
        }
        let title = text_at(&format!("{call_at}/title"))
            .or_else(|| text_at(&format!("{call_at}/kind")))
            .unwrap_or_else(|| "Tool call".into());
        let Some(known) = message.json_at(call_at) else {
            return;
        };
        let mut made = object! { "sessionUpdate": "tool_call", "toolCallId": call, "title": title };
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
        let made = Message::update(Node::string(&session), made);
        step.before.push(made);
    }

    pub(super) fn begin_tool_call(&mut self, message: &mut Message<'_>) {
        let text_at = |at: &str| message.text_at(at);
        let session = message.session();
        let call = text_at("/update/toolCallId");
        let (Some(session), Some(call)) = (session, call) else {
            return;
        };
        if !self.actions.announce(&session, &call) {
            return;
        }
        let kind = text_at("/update/kind").unwrap_or_else(|| "Tool call".into());
        if text_at("/update/title").is_none() {
            message.set_text("/update/title", &kind);
        }
        message.set_text("/update/sessionUpdate", "tool_call");
    }

    pub(super) fn deny_with_option(&self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        let pending = &*step.pending;
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
            let what = format!("a denial that was sent as cancelled; `{id}` is answered");
            step.out.note(DialectEvent::Permission, None, what);
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
    message.body = object! { "code": -32603, "message": text, "data": data };
    message.changed = true;
}

/// Whether it is the error for an unknown method.
pub(super) fn is_unsupported(message: &Message<'_>) -> bool {
    let code = message.get("/code");
    let unknown = code.is_some_and(|code| text::equals(b"-32601", &code.json()));
    message.kind == Kind::Error && unknown
}

pub(super) fn accept_unsupported(message: &mut Message<'_>, step: &mut Step<'_, '_>) {
    if !is_unsupported(message) {
        return;
    }
    message.kind = Kind::Result;
    message.body = Node::raw(b"{}");
    message.changed = true;
    let method = &message.method;
    let what = format!("the peer does not support {method} and does not need it");
    step.out.note(DialectEvent::Answered, None, what);
}

pub(super) fn missing_session(message: &mut Message<'_>, step: &Step<'_, '_>) {
    let data = message.get("/data").map(|data| data.kind());
    let named = message.get("/data/sessionId").is_some();
    let takes = matches!(data, None | Some(JsonType::Null | JsonType::Object));
    if let Some(session) = step.pending.session.as_deref().filter(|_| takes && !named) {
        message.set_text("/data/sessionId", session);
    }
}
