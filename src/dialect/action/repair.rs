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

use std::borrow::Cow;

use super::turn::is_unsupported;
use crate::message::Message;
use crate::pending::PendingRequest;
use crate::step::Step;
use crate::table::Way;
use crate::text;
use crate::translation::DialectEvent;
use crate::translator::{PERMISSION, Translator};
use crate::tree::Node;
use jsonrpc::Kind;

const PARKED: &str = "/toolCall/_meta/acp-relay";

impl Translator {
    pub(super) fn find_tool_call<'a>(&self, message: &mut Message<'a>, step: &Step<'_, 'a>) {
        let parked = message.text_at(&format!("{PARKED}/toolCallId"));
        if step.way == Way::Write {
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
                *message = step.original.clone();
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
        message.set_text("/toolCall/toolCallId", &id);
    }

    pub(super) fn stop_reason(&self, message: &mut Message<'_>, step: &Step<'_, '_>) {
        if message.get("/stopReason").is_none() {
            let cancelled = self.was_cancelled(step.pending);
            let reason = if cancelled { "cancelled" } else { "end_turn" };
            message.set_text("/stopReason", reason);
        }
    }

    /// Whether the blocks of a final answer have been streamed in this turn.
    pub(crate) fn was_streamed(&self, pending: &PendingRequest, blocks: &Node<'_>) -> bool {
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
    let id = message.id.as_id();
    let text = text::string(id.json()).map(Cow::into_owned);
    text.unwrap_or_else(|| String::from_utf8_lossy(id.json()).into_owned())
}

pub(super) fn reject_unsupported(message: &mut Message<'_>, step: &mut Step<'_, '_>) {
    if !is_unsupported(message) || &*step.pending.canonical != PERMISSION {
        return;
    }
    let offered = step.pending.offered.clone().unwrap_or_default();
    message.kind = Kind::Result;
    message.body = Node::owned(offered.refusal().result());
    message.changed = true;
    let why = "the client does not support permission requests; it failed closed";
    step.out.note(DialectEvent::Permission, None, why);
}

pub(super) fn join_permission_title(message: &mut Message<'_>, step: &Step<'_, '_>) {
    let title_at = format!("{PARKED}/title");
    let description_at = format!("{PARKED}/description");
    let title = message.text_at(&title_at);
    if step.way == Way::Read {
        let whole = match (title, message.text_at(&description_at)) {
            (Some(title), Some(description)) => format!("{title}: {description}"),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => "Tool call".into(),
        };
        return message.set_text("/toolCall/title", &whole);
    }
    if title.is_some() {
        return;
    }
    let title = message
        .text_at("/toolCall/title")
        .or_else(|| message.text_at("/toolCall/kind"))
        .unwrap_or_else(|| "Tool call".into());
    let content = message.json_at("/toolCall/content").unwrap_or_default();
    let is_list = text::JsonType::of(&content) == text::JsonType::Array;
    let first = text::items(if is_list { &content } else { b"[]" }).find_map(|item| {
        let text = text::member(text::member(item, "content")?, "text")?;
        text::string(text).map(Cow::into_owned)
    });
    let command = message.text_at("/toolCall/rawInput/command");
    let description = first.or_else(|| command.map(|command| format!("Run: {command}")));
    message.set_text(&title_at, &title);
    if let Some(description) = description {
        message.set_text(&description_at, &description);
    }
}
