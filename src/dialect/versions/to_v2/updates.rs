//! The updates of a session.

use super::content;
use super::messages::Speaker;
use super::parts::keep_only;
use super::session::Session;
use crate::dialect::message::Message;
use crate::dialect::pointer::own_pointer;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{remove, set, text as text_of, value};

/// Updates that are no history: they are shown even if a session is resumed without a replay.
const LIVE: [&str; 5] = [
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "session_info_update",
    "usage_update",
];
/// Updates that show that the agent works.
const WORK: [&str; 8] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "plan_update",
    "plan_removed",
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
        return out.note(
            DialectEvent::Dropped,
            "replay",
            "the client asked for no history",
        );
    }
    if WORK.contains(&&*kind) {
        session.turns.work(out);
    }
    let Some(update) = message.body.get_mut(own_pointer("/update").names()) else {
        return;
    };
    let is_shown = match &*kind {
        "tool_call" | "tool_call_update" => tool_call(session, &kind, update, out),
        "plan" => plan(update),
        "usage_update" => cost(update),
        "session_info_update" => session.describe(update),
        "current_mode_update" => mode(session, update),
        "config_option_update" => {
            let is_known = session.options.replace(update);
            if let Some(whole) = session.options.whole() {
                set(update, "configOptions", whole);
            }
            !is_known
        }
        kind => Speaker::of(kind).is_none_or(|speaker| chunk(session, speaker, update, out)),
    };
    if is_shown {
        out.rule("update");
        out.peer(message);
    }
}

/// A part of a message. Returns whether it is shown, as the others.
fn chunk(
    session: &mut Session,
    speaker: Speaker,
    update: &mut Node<'_>,
    out: &mut Exchange<'_>,
) -> bool {
    let Some(mut block) = value(update, "content") else {
        return false;
    };
    let messages = &mut session.turns.messages;
    if speaker == Speaker::User && session.turns.echo.takes(&block) {
        messages.split();
        out.note(
            DialectEvent::Dropped,
            "echo",
            "the agent repeats the user's message",
        );
        return false;
    }
    let id = messages.id(speaker, text_of(update, "messageId").as_deref());
    set(update, "messageId", Node::string(&id));
    content::to_v2(&mut block);
    set(update, "content", block);
    true
}

fn tool_call(
    session: &mut Session,
    kind: &str,
    update: &mut Node<'_>,
    out: &mut Exchange<'_>,
) -> bool {
    let terminals = session.see(update, out);
    session.tools.convert(update, out);
    set(update, "sessionUpdate", Node::string("tool_call_update"));
    let members = update.members().map_or(0, |members| members.len());
    kind == "tool_call" || !terminals || members > 2
}

/// The agent's only plan.
fn plan(update: &mut Node<'_>) -> bool {
    let entries = value(update, "entries").unwrap_or_else(|| Node::raw(b"[]"));
    remove(update, "entries");
    set(update, "sessionUpdate", Node::string("plan_update"));
    let plan = vec![
        ("type", Node::string("items")),
        ("planId", Node::string("main")),
        ("entries", entries),
    ];
    set(update, "plan", Node::object(plan));
    true
}

/// A currency has three capital letters in v2.
fn cost(update: &mut Node<'_>) -> bool {
    if let Some(mut cost) = value(update, "cost") {
        let currency = text_of(&cost, "currency").unwrap_or_default();
        if currency.len() == 3 && currency.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            set(
                &mut cost,
                "currency",
                Node::string(&currency.to_ascii_uppercase()),
            );
            set(update, "cost", cost);
        } else {
            remove(update, "cost");
        }
    }
    true
}

/// A change of the mode is one of an option.
fn mode(session: &mut Session, update: &mut Node<'_>) -> bool {
    // The documentation of v1 has the second name.
    let mode = text_of(update, "currentModeId").or_else(|| text_of(update, "modeId"));
    let options = &mut session.options;
    let is_changed = mode.is_some_and(|mode| options.set_mode(&mode));
    let Some(whole) = options.whole().filter(|_| is_changed) else {
        return false;
    };
    keep_only(update, &["_meta"]);
    set(
        update,
        "sessionUpdate",
        Node::string("config_option_update"),
    );
    set(update, "configOptions", whole);
    true
}
