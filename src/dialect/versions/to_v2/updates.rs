//! The updates of a session.

use super::content;
use super::messages::Speaker;
use super::parts::{keep_only, member, put, remove, text_of};
use super::session::Session;
use crate::dialect::message::Message;
use crate::dialect::pointer::own_pointer;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;

/// Updates that are no history: they are shown even if a session is resumed without a replay.
const LIVE: [&str; 5] = [
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "session_info_update",
    "usage_update",
];
/// Updates that only v2 has.
const ONLY_V2: [&str; 7] = [
    "user_message",
    "agent_message",
    "agent_thought",
    "state_update",
    "tool_call_content_chunk",
    "terminal_update",
    "terminal_output_chunk",
];

/// Converts an update of the agent.
pub(super) fn convert<'a>(session: &mut Session, mut message: Message<'a>, out: &mut Exchange<'a>) {
    let kind = message.text_at("/update/sessionUpdate").unwrap_or_default();
    if kind.is_empty() || ONLY_V2.contains(&&*kind) {
        let what = format!("an update `{kind}`, which v1 does not have");
        return out.note(DialectEvent::Dropped, "update", what);
    }
    if session.quiet && !LIVE.contains(&&*kind) {
        let what = "a replay that the client has not asked for";
        return out.note(DialectEvent::Dropped, "replay", what);
    }
    let Some(update) = message.body.get_mut(own_pointer("/update").names()) else {
        return;
    };
    let is_converted = match &*kind {
        "tool_call" | "tool_call_update" => {
            session.turns.work(out);
            let session_id = message.session().unwrap_or_default();
            let update = message.body.get_mut(own_pointer("/update").names());
            update.is_some_and(|update| tool_call(session, &session_id, &kind, update, out))
        }
        "plan" => {
            session.turns.work(out);
            plan(update);
            true
        }
        "plan_update" | "plan_removed" => {
            session.turns.work(out);
            true
        }
        "usage_update" => {
            cost(update);
            true
        }
        "session_info_update" => {
            session.describe(update);
            true
        }
        "current_mode_update" => mode(session, update, out),
        "config_option_update" => {
            let is_known = session.options.replace(update);
            if let Some(whole) = session.options.whole() {
                put(update, "configOptions", whole);
            }
            !is_known
        }
        kind => match Speaker::of(kind) {
            Some(speaker) => {
                session.turns.work(out);
                chunk(session, speaker, update, out)
            }
            None => true,
        },
    };
    if is_converted {
        out.rule("update");
        out.peer(message);
    }
}

/// A part of a message. Returns whether it is shown.
fn chunk(
    session: &mut Session,
    speaker: Speaker,
    update: &mut Node<'_>,
    out: &mut Exchange<'_>,
) -> bool {
    let Some(mut block) = member(update, "content") else {
        return false;
    };
    if speaker == Speaker::User && session.turns.is_echo(&block) {
        session.turns.messages.split();
        let what = "the agent repeats the user's message";
        out.note(DialectEvent::Dropped, "echo", what);
        return false;
    }
    let given = text_of(update, "messageId");
    let id = session.turns.messages.id(speaker, given.as_deref());
    put(update, "messageId", Node::string(&id));
    content::to_v2(&mut block);
    put(update, "content", block);
    true
}

/// A tool call. Returns whether it is shown beside its terminals.
fn tool_call(
    session: &mut Session,
    id: &str,
    kind: &str,
    update: &mut Node<'_>,
    out: &mut Exchange<'_>,
) -> bool {
    if session.tools.see(update) {
        session.turns.messages.split();
    }
    let terminals = session.tools.terminals(update);
    let has_terminals = !terminals.is_empty();
    for terminal in terminals {
        out.rule("terminal");
        out.peer(Message::update(Node::string(id), terminal));
    }
    session.tools.convert(update, out);
    put(update, "sessionUpdate", Node::string("tool_call_update"));
    let members = update.members().map_or(0, |members| members.len());
    kind == "tool_call" || !has_terminals || members > 2
}

/// The agent's only plan.
fn plan(update: &mut Node<'_>) {
    let entries = member(update, "entries").unwrap_or_else(|| Node::raw(b"[]"));
    remove(update, "entries");
    put(update, "sessionUpdate", Node::string("plan_update"));
    let plan = vec![
        ("type", Node::string("items")),
        ("planId", Node::string("main")),
        ("entries", entries),
    ];
    put(update, "plan", Node::object(plan));
}

/// A currency has three capital letters in v2.
fn cost(update: &mut Node<'_>) {
    let Some(mut cost) = member(update, "cost") else {
        return;
    };
    let currency = text_of(&cost, "currency").unwrap_or_default();
    if currency.len() == 3 && currency.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        put(
            &mut cost,
            "currency",
            Node::string(&currency.to_ascii_uppercase()),
        );
        put(update, "cost", cost);
    } else {
        remove(update, "cost");
    }
}

/// A change of the mode. Returns whether an option has changed.
fn mode(session: &mut Session, update: &mut Node<'_>, out: &mut Exchange<'_>) -> bool {
    // The documentation of v1 has the second name.
    let stated = ["currentModeId", "modeId"];
    let stated = stated.iter().find_map(|name| text_of(update, name));
    if !stated.is_some_and(|mode| session.options.set_mode(&mode)) {
        return false;
    }
    let Some(whole) = session.options.whole() else {
        return false;
    };
    out.rule("modes");
    keep_only(update, &["sessionUpdate", "_meta"]);
    put(
        update,
        "sessionUpdate",
        Node::string("config_option_update"),
    );
    put(update, "configOptions", whole);
    true
}
