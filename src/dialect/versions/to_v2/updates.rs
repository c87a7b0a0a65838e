//! The updates of a session, and the permissions that the agent asks for.

use super::messages::Speaker;
use super::session::Session;
use crate::message::Message;
use crate::object::object;
use crate::pointer::own_pointer;
use crate::text::JsonType;
use crate::tree::Node;
use crate::versions::content;
use crate::versions::out::Out;

/// Updates that are no history: they are shown even if a session is resumed without a replay.
const LIVE: [&str; 6] = [
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "session_info_update",
    "subagent_update",
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
pub(super) fn convert<'a>(session: &mut Session, mut message: Message<'a>, out: &mut Out<'a>) {
    let kind = message.text_at("/update/sessionUpdate").unwrap_or_default();
    if kind.is_empty() || ONLY_V2.contains(&&*kind) {
        let what = format!("an update `{kind}`, which v1 does not have");
        return out.dropped("update", what);
    }
    if session.quiet && !LIVE.contains(&&*kind) {
        return out.dropped("replay", "the client asked for no history");
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
                update.set("configOptions", whole);
            }
            !is_known
        }
        kind => Speaker::of(kind).is_none_or(|speaker| chunk(session, speaker, update, out)),
    };
    if is_shown {
        out.rule("update");
        out.pass(message);
    }
}

/// Converts a permission request of the agent: v2 asks with a title and a subject.
pub(super) fn permission<'a>(session: &mut Session, mut request: Message<'a>, out: &mut Out<'a>) {
    let params = &mut request.body;
    let call = params.value("toolCall");
    let mut title = String::new();
    if let Some(mut call) = call.filter(|call| call.kind() == Some(JsonType::Object)) {
        session.see(&mut call, out);
        session.tools.title(&call).clone_into(&mut title);
        session.tools.convert(&mut call, out);
        params.set("subject", object! { "type": "tool_call", "toolCall": call });
    }
    if title.is_empty() {
        "Permission required".clone_into(&mut title);
    }
    params.set("title", title);
    params.keep_only("sessionId title subject options");
    out.rule("permission");
    out.pass(request);
}

/// A part of a message. Returns whether it is shown, as the others.
fn chunk(
    session: &mut Session,
    speaker: Speaker,
    update: &mut Node<'_>,
    out: &mut Out<'_>,
) -> bool {
    let Some(mut block) = update.value("content") else {
        return false;
    };
    if speaker == Speaker::User && session.turns.repeats(&block) {
        session.turns.messages.split();
        out.dropped("echo", "the agent repeats the user's message");
        return false;
    }
    let given = update.text("messageId");
    update.set(
        "messageId",
        session.turns.messages.id(speaker, given.as_deref()),
    );
    content::to_v2(&mut block);
    update.set("content", block);
    true
}

fn tool_call(session: &mut Session, kind: &str, update: &mut Node<'_>, out: &mut Out<'_>) -> bool {
    let terminals = session.see(update, out);
    session.tools.convert(update, out);
    update.set("sessionUpdate", "tool_call_update");
    let members = update.members().map_or(0, |members| members.len());
    kind == "tool_call" || !terminals || members > 2
}

/// The agent's only plan.
fn plan(update: &mut Node<'_>) -> bool {
    let entries = update.value("entries").unwrap_or(Node::Array(Vec::new()));
    update.remove("entries");
    update.set("sessionUpdate", "plan_update");
    update.set(
        "plan",
        object! { "type": "items", "planId": "main", "entries": entries },
    );
    true
}

/// A currency has three capital letters in v2.
fn cost(update: &mut Node<'_>) -> bool {
    if let Some(mut cost) = update.value("cost") {
        let currency = cost.word("currency");
        let is_code = currency.len() == 3 && currency.bytes().all(|one| one.is_ascii_alphabetic());
        cost.set("currency", currency.to_ascii_uppercase());
        update.set("cost", is_code.then_some(cost));
    }
    true
}

/// A change of the mode is one of an option.
fn mode(session: &mut Session, update: &mut Node<'_>) -> bool {
    // The documentation of v1 has the second name.
    let mode = update
        .text("currentModeId")
        .or_else(|| update.text("modeId"));
    let options = &mut session.options;
    let is_changed = mode.is_some_and(|mode| options.set_mode(&mode));
    let Some(whole) = options.whole().filter(|_| is_changed) else {
        return false;
    };
    update.keep_only("");
    update.set("sessionUpdate", "config_option_update");
    update.set("configOptions", whole);
    true
}
