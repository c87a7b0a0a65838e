//! The members of requests and results that the other version has, and errors.

use crate::dialect::message::Message;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{Exchange, INTERNAL_ERROR};
use crate::dialect::versions::json::{LISTED, array, member, only, set, value};
use crate::jsonrpc::Kind;

/// A draft of v2: the agent does not speak the version.
const UNSUPPORTED_VERSION: i32 = -32022;

/// The members of the params of methods.
const PARAMS: [(&str, &[&str]); 12] = [
    ("session/new", OPENED),
    ("session/fork", OPENED),
    ("session/load", OPENED),
    ("session/resume", OPENED),
    ("session/prompt", &["sessionId", "prompt", "_meta"]),
    ("session/list", &["cwd", "cursor", "archived", "_meta"]),
    ("session/close", &["sessionId", "_meta"]),
    ("session/delete", &["sessionId", "_meta"]),
    ("session/cancel", &["sessionId", "_meta"]),
    (
        "session/set_config_option",
        &["sessionId", "configId", "type", "value", "_meta"],
    ),
    ("authenticate", &["methodId", "_meta"]),
    ("logout", &["_meta"]),
];

const OPENED: &[&str] = &[
    "sessionId",
    "cwd",
    "mcpServers",
    "additionalDirectories",
    "systemPrompt",
    "_meta",
];

/// The members of the results of methods, as both versions have them.
const RESULTS: [(&str, &[&str]); 10] = [
    ("session/new", &["sessionId", "configOptions", "_meta"]),
    ("session/fork", &["sessionId", "configOptions", "_meta"]),
    ("session/resume", &["configOptions", "_meta"]),
    ("session/set_config_option", &["configOptions", "_meta"]),
    ("session/list", &["sessions", "nextCursor", "_meta"]),
    ("session/close", &["_meta"]),
    ("session/delete", &["_meta"]),
    ("authenticate", &["_meta"]),
    ("logout", &["_meta"]),
    ("elicitation/create", &["action", "content", "_meta"]),
];

/// Leaves out what the other version does not define of a request or a result.
pub(super) fn close(message: &mut Message<'_>, out: &mut Exchange<'_>) {
    let methods: &[(&str, &[&str])] = match message.kind {
        Kind::Result => &RESULTS,
        Kind::Request | Kind::Notification => &PARAMS,
        Kind::Error => return,
    };
    let Some((_, names)) = methods.iter().find(|(name, _)| *name == &*message.method) else {
        return;
    };
    let before = message.body.members().map_or(0, |members| members.len());
    let mut body = only(&message.body, names);
    let is_shorter = body.members().is_some_and(|members| members.len() < before);
    // The commands of a new session follow as an update.
    let is_moved = member(&message.body, "availableCommands").is_some();
    if is_shorter && !is_moved {
        let what = format!("members of {} that the other version lacks", message.method);
        out.note(DialectEvent::Dropped, "members", what);
    }
    if body.members().is_none() && message.kind == Kind::Result {
        body = Node::Object(Vec::new());
    }
    if let Some(all) = array(&body, "sessions") {
        let all = all.iter().map(|session| only(session, &LISTED)).collect();
        set(&mut body, "sessions", Node::Array(all));
    }
    if !matches!(message.body, Node::Absent) || message.kind == Kind::Result {
        message.body = body;
    }
}

/// An error of the agent for a v1 client.
pub(super) fn error_for_v1(answer: &Message<'_>) -> Message<'static> {
    let mut made = answer.to_static();
    if has_code(answer, UNSUPPORTED_VERSION) {
        let code = INTERNAL_ERROR.to_string().into_bytes();
        set(&mut made.body, "code", Node::owned(code));
    }
    made
}

/// Whether it is an error of that code.
pub(super) fn has_code(answer: &Message<'_>, code: i32) -> bool {
    let found = value(&answer.body, "code");
    answer.kind == Kind::Error
        && found.is_some_and(|found| *found.json() == *code.to_string().as_bytes())
}
