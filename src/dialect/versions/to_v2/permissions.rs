//! Questions to the user: permissions and elicitations.

use super::parts::{has_object, keep_only, member, put, text_of};
use super::session::Session;
use crate::dialect::message::Message;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::jsonrpc::Kind;

/// The members of a permission request in v2.
const MEMBERS: [&str; 6] = [
    "sessionId",
    "title",
    "description",
    "subject",
    "options",
    "_meta",
];

/// Converts a permission request of the agent.
pub(super) fn request<'a>(session: &mut Session, mut message: Message<'a>, out: &mut Exchange<'a>) {
    let params = &mut message.body;
    let mut title = None;
    if has_object(params, "toolCall")
        && let Some(mut call) = member(params, "toolCall")
    {
        if session.tools.see(&call) {
            session.turns.messages.split();
        }
        let id = text_of(&call, "toolCallId").unwrap_or_default();
        let known = || session.tools.title(&id).map(str::to_owned);
        title = text_of(&call, "title")
            .filter(|title| !title.is_empty())
            .or_else(known);
        let terminals = session.tools.terminals(&mut call);
        for terminal in terminals {
            let session_id = text_of(params, "sessionId").unwrap_or_default();
            out.peer(Message::update(Node::string(&session_id), terminal));
        }
        session.tools.convert(&mut call, out);
        let subject = vec![("type", Node::string("tool_call")), ("toolCall", call)];
        put(params, "subject", Node::object(subject));
    }
    let title = title.as_deref().unwrap_or("Permission required");
    put(params, "title", Node::string(title));
    keep_only(params, &MEMBERS);
    out.rule("permission");
    out.peer(message);
}

/// Converts the client's answer to one.
pub(super) fn answer<'a>(mut message: Message<'a>, out: &mut Exchange<'a>) {
    if message.kind == Kind::Error {
        return out.other(message);
    }
    let outcome = member(&message.body, "outcome");
    let name = outcome
        .as_ref()
        .and_then(|outcome| text_of(outcome, "outcome"));
    let is_known = match name.as_deref() {
        Some("cancelled") => true,
        Some("selected") => outcome.is_some_and(|it| text_of(&it, "optionId").is_some()),
        _ => false,
    };
    if !is_known {
        let what = "an outcome that v1 does not have is no approval";
        out.note(DialectEvent::Permission, "permission", what);
        message.body = Node::raw(br#"{"outcome":{"outcome":"cancelled"}}"#);
    }
    out.other(message);
}
