//! Actions for what a peer omits in permission requests, options and the end of a turn.
//!
//! - `find_tool_call`: a permission request gets the id of its tool call: the newest open call of
//!   the session, preferably one whose title or command the description contains, or whose kind
//!   matches; else an id derived from the request's. A constant id that matches no call stays
//!   unchanged.
//! - `join_permission_title`: a title and a description become the title of a tool call, and back.
//! - `rebuild_config_options`: an empty answer to `session/set_config_option` gets the remembered
//!   options with the new value.
//! - `reject_unsupported`: error −32601 to a permission request becomes a refusal.
//! - `stop_reason_of_turn`: `cancelled` when the turn was cancelled, else `end_turn`.
//! - `only_new_text`: text that was streamed in this turn is not sent again.

use super::context::ActionContext;
use super::option::chosen;
use crate::dialect::message::Message;
use crate::dialect::pending::PendingRequest;
use crate::dialect::table::Way;
use crate::dialect::text;
use crate::dialect::translation::{DialectEvent, Translation};
use crate::dialect::translator::{PERMISSION, Translator};
use crate::dialect::tree::Node;
use crate::jsonrpc::Kind;

const PARKED: &str = "/toolCall/_meta/acp-relay";

impl Translator {
    pub(super) fn find_tool_call<'a>(
        &self,
        message: &mut Message<'a>,
        context: &ActionContext<'_, 'a>,
    ) {
        let parked = message.text_at(&format!("{PARKED}/toolCallId"));
        if context.way == Way::Write {
            if parked.is_some() {
                message.take("/toolCall/toolCallId");
            }
            return;
        }
        let text_at = |at: &str| message.text_at(at).unwrap_or_default();
        let session = self.sessions.get(&text_at("/sessionId"));
        let open = || {
            let calls = session
                .into_iter()
                .flat_map(|session| session.calls.iter().rev());
            calls.filter(|call| !call.done)
        };
        let id = if let Some(parked) = parked {
            let mut kind = text_at("/toolCall/kind");
            if kind.is_empty() {
                kind = match parked.split('-').next() {
                    Some("shell") => "execute".into(),
                    Some("write") => "edit".into(),
                    _ => parked.split('-').next().unwrap_or_default().to_owned(),
                };
            }
            let command = text_at("/toolCall/rawInput/command");
            let fitting = || open().filter(|call| call.kind == kind);
            let same = fitting().find(|call| !command.is_empty() && call.command == command);
            let found = same.or_else(|| fitting().next());
            let Some(call) = found.filter(|call| call.id != parked) else {
                *message = context.original.clone();
                message.changed = false;
                return;
            };
            call.id.clone()
        } else {
            let description = text_at(&format!("{PARKED}/description"));
            let named = |part: &str| !part.is_empty() && description.contains(part);
            let found = open()
                .find(|call| named(&call.title) || named(&call.command))
                .or_else(|| open().next());
            found.map_or_else(
                || format!("perm_{}", plain_id(message)),
                |call| call.id.clone(),
            )
        };
        message.set("/toolCall/toolCallId", Node::string(&id));
    }

    pub(super) fn rebuild_options(
        &self,
        message: &mut Message<'_>,
        pending: &PendingRequest,
        way: Way,
    ) {
        let has = message.get("/configOptions").is_some();
        if way == Way::Write || has || message.kind != Kind::Result {
            return;
        }
        let session = self.session(pending);
        let known = session.and_then(|session| session.config.as_deref());
        message.set("/configOptions", chosen(known.unwrap_or(b"[]"), pending));
    }

    pub(super) fn reject_unsupported(
        &self,
        message: &mut Message<'_>,
        pending: &PendingRequest,
        out: &mut Translation,
    ) {
        let code = message.get("/code");
        let unknown = code.is_some_and(|code| text::equals(b"-32601", &code.json()));
        if message.kind != Kind::Error || !unknown || &*pending.canonical != PERMISSION {
            return;
        }
        let offered = pending.offered.clone().unwrap_or_default();
        message.kind = Kind::Result;
        message.body = Node::owned(offered.refusal().result());
        message.changed = true;
        let why = "the client does not support permission requests; it failed closed";
        out.note(DialectEvent::Permission, None, why);
    }

    pub(super) fn stop_reason(&self, message: &mut Message<'_>, pending: &PendingRequest) {
        if message.get("/stopReason").is_some() {
            return;
        }
        let reason = match self.was_cancelled(pending) {
            true => "cancelled",
            false => "end_turn",
        };
        message.set("/stopReason", Node::string(reason));
    }

    /// Whether the blocks of a final answer have been streamed in this turn.
    pub(in crate::dialect) fn was_streamed(
        &self,
        pending: &PendingRequest,
        blocks: &Node<'_>,
    ) -> bool {
        let json = blocks.json();
        let mut all = String::new();
        if text::JsonType::of(&json) == text::JsonType::Array {
            for block in text::items(&json) {
                let Some(text) = text::member(block, "text").and_then(text::string) else {
                    return false;
                };
                all.push_str(&text);
            }
        }
        let session = self.session(pending);
        !all.is_empty() && session.is_some_and(|session| session.streamed.ends_with(&all))
    }
}

/// A request's id as text.
fn plain_id(message: &Message<'_>) -> String {
    let text = message.id.to_owned();
    let json = text.as_id().json().to_vec();
    text::string(&json).map_or_else(
        || String::from_utf8_lossy(&json).into_owned(),
        std::borrow::Cow::into_owned,
    )
}

pub(super) fn join_permission_title(message: &mut Message<'_>, way: Way) {
    let title_at = format!("{PARKED}/title");
    let description_at = format!("{PARKED}/description");
    let text_at = |message: &Message<'_>, at: &str| message.text_at(at);
    let title = text_at(message, &title_at);
    if way == Way::Read {
        let whole = match (title, text_at(message, &description_at)) {
            (Some(title), Some(description)) => format!("{title}: {description}"),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => "Tool call".into(),
        };
        message.set("/toolCall/title", Node::string(&whole));
        return;
    }
    if title.is_some() {
        return;
    }
    let title = text_at(message, "/toolCall/title")
        .or_else(|| text_at(message, "/toolCall/kind"))
        .unwrap_or_else(|| "Tool call".into());
    let content = message
        .get("/toolCall/content")
        .map(|look| look.json().into_owned());
    let first = content
        .as_deref()
        .filter(|json| text::JsonType::of(json) == text::JsonType::Array)
        .and_then(|json| {
            text::items(json).find_map(|item| {
                text::string(text::member(text::member(item, "content")?, "text")?)
                    .map(std::borrow::Cow::into_owned)
            })
        });
    let command = || {
        Some(format!(
            "Run: {}",
            text_at(message, "/toolCall/rawInput/command")?
        ))
    };
    let description = first.or_else(command);
    message.set(&title_at, Node::string(&title));
    if let Some(description) = description {
        message.set(&description_at, Node::string(&description));
    }
}
