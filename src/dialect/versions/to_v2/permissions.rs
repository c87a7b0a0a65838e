//! Permissions: v2 asks with a title and a subject, v1 with a tool call.

use super::parts::keep_only;
use super::session::Session;
use crate::dialect::message::Message;
use crate::dialect::text::JsonType;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{set, text as text_of, value};
use crate::jsonrpc::Kind;

/// The members of a permission request in v2.
const MEMBERS: [&str; 5] = ["sessionId", "title", "subject", "options", "_meta"];

/// Converts a permission request of the agent.
pub(super) fn request<'a>(session: &mut Session, mut message: Message<'a>, out: &mut Exchange<'a>) {
    let params = &mut message.body;
    let mut title = String::new();
    if let Some(mut call) = value(params, "toolCall")
        && call.kind() == Some(JsonType::Object)
    {
        session.see(&mut call, out);
        let id = text_of(&call, "toolCallId").unwrap_or_default();
        title = session.tools.titles.get(&*id).cloned().unwrap_or_default();
        session.tools.convert(&mut call, out);
        let subject = vec![("type", Node::string("tool_call")), ("toolCall", call)];
        set(params, "subject", Node::object(subject));
    }
    if title.is_empty() {
        "Permission required".clone_into(&mut title);
    }
    set(params, "title", Node::string(&title));
    keep_only(params, &MEMBERS);
    out.rule("permission");
    out.peer(message);
}

/// Converts the client's answer to one.
pub(super) fn answer<'a>(mut message: Message<'a>, out: &mut Exchange<'a>) {
    let outcome = value(&message.body, "outcome").unwrap_or(Node::Absent);
    let is_known = match text_of(&outcome, "outcome").as_deref() {
        Some("cancelled") => true,
        Some("selected") => text_of(&outcome, "optionId").is_some(),
        _ => message.kind == Kind::Error,
    };
    if !is_known {
        let what = "an outcome that v1 does not have is no approval";
        out.note(DialectEvent::Permission, "permission", what);
        message.body = Node::raw(br#"{"outcome":{"outcome":"cancelled"}}"#);
    }
    out.other(message);
}
