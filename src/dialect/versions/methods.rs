//! The methods that pass between the versions, and the members of their params and results.

use super::out::{INTERNAL_ERROR, Out, error_code};
use crate::message::Message;
use crate::object::{Json, object};
use crate::text::JsonType;
use jsonrpc::{Id, IdBuf, Kind};

/// A draft of v2: the agent does not speak the version.
const UNSUPPORTED_VERSION: i32 = -32022;

/// Methods of agents that have the same shape in both versions, as far as the table does not convert
/// them, with those of unstable schemas. What ends in `/` is the beginning of some.
const OF_AGENTS: [&str; 8] = [
    "providers/",
    "nes/",
    "document/",
    "session/set_title",
    "session/status",
    "session/archive",
    "session/unarchive",
    "auth/status",
];

/// The members that params have in both versions, by method.
const PARAMS: [(&str, &str); 12] = [
    ("session/new", OPENING),
    ("session/fork", OPENING),
    ("session/load", OPENING),
    ("session/resume", OPENING),
    ("session/prompt", "sessionId prompt"),
    ("session/list", "cwd cursor archived"),
    ("session/close", "sessionId"),
    ("session/delete", "sessionId"),
    ("session/cancel", "sessionId"),
    ("session/set_config_option", "sessionId configId type value"),
    ("authenticate", "methodId"),
    ("logout", ""),
];
const OPENING: &str = "sessionId cwd mcpServers additionalDirectories systemPrompt";

/// The members that results have in both versions, by method.
const RESULTS: [(&str, &str); 13] = [
    ("session/new", "sessionId configOptions"),
    ("session/fork", "sessionId configOptions"),
    ("session/load", "configOptions"),
    ("session/resume", "configOptions"),
    ("session/set_config_option", "configOptions"),
    ("session/set_mode", "configOptions"),
    ("session/set_model", "configOptions"),
    ("session/list", "sessions nextCursor"),
    ("session/close", ""),
    ("session/delete", ""),
    ("authenticate", ""),
    ("logout", ""),
    ("elicitation/create", "action content"),
];
/// The members of a session in a list.
const LISTED: &str = "sessionId cwd additionalDirectories title updatedAt archived";

/// Whether a method passes to agents of either version.
pub(super) fn passes_to_agents(method: &str) -> bool {
    let is_named = |name: &&str| match name.ends_with('/') {
        true => method.starts_with(name),
        false => method == *name,
    };
    passes_to_clients(method) || OF_AGENTS.iter().any(is_named)
}

/// Whether a method passes to clients of either version.
pub(super) fn passes_to_clients(method: &str) -> bool {
    method.starts_with('_') || method.starts_with("mcp/")
}

/// The request that a notification about one is about.
pub(super) fn requested(message: &Message<'_>) -> Option<IdBuf> {
    let id = message.body.member("requestId")?;
    let is_id = matches!(id.kind(), JsonType::Number | JsonType::String);
    is_id.then(|| Id::of_json(&id.json()).to_owned())
}

/// Leaves out of params or a result what the other version does not have.
pub(super) fn close(message: &mut Message<'_>, out: &mut Out<'_>) {
    let shapes: &[(&str, &str)] = match message.kind {
        Kind::Result => &RESULTS,
        Kind::Request | Kind::Notification => &PARAMS,
        Kind::Error => return,
    };
    let Some((_, names)) = shapes.iter().find(|(name, _)| *name == message.method) else {
        return;
    };
    let is_object = message.body.kind() == Some(JsonType::Object);
    if message.kind == Kind::Result && !is_object {
        // Some agents answer null.
        message.body = object! {};
    }
    // The commands of a new session follow as an update.
    let is_moved = message.body.member("availableCommands").is_some();
    if message.body.keep_only(names) && !is_moved {
        let what = format!("members of {} that the other version lacks", message.method);
        out.dropped("members", what);
    }
    let body = &mut message.body;
    body.change_each("sessions", |session| session.keep_only(LISTED));
}

/// An error of a v2 agent for a v1 client.
pub(super) fn error_for_v1(answer: &Message<'_>) -> Message<'static> {
    let mut made = answer.to_static();
    if error_code(answer) == Some(UNSUPPORTED_VERSION) {
        made.body.set("code", INTERNAL_ERROR);
    }
    made
}

/// The result of a permission request that was not decided.
pub(super) fn no_decision() -> Json {
    object! { "outcome": object! { "outcome": "cancelled" } }
}
