//! The names of canonical methods, to recognise unknown ones.
//!
//! It is a separate list because the schema (see `acp`) is never read while messages are forwarded;
//! a test compares the two.

use std::borrow::Cow;

use jsonrpc::{Envelope, Frame};

/// A method's name that outlives its message; a name of the protocol needs no allocation.
pub type MethodName = Cow<'static, str>;

/// The name of a method.
pub(super) fn method_name(text: &str) -> MethodName {
    let known = canonical(text.as_bytes()).map(Cow::Borrowed);
    known.unwrap_or_else(|| Cow::Owned(text.to_owned()))
}

/// The method of a message.
pub(super) fn method_of(frame: &Frame, at: &Envelope) -> MethodName {
    // Methods with escapes are rare.
    let known = canonical(at.raw_method(frame)).map(Cow::Borrowed);
    known.unwrap_or_else(|| method_name(&at.method(frame)))
}

/// Whether the stable v1 protocol has this method, or leaves the name to extensions.
#[must_use]
pub fn is_known(method: &str) -> bool {
    is_known_raw(method.as_bytes())
}

/// The same for a method as it is written between its quotes; `false` when it contains escapes.
pub fn is_known_raw(method: &[u8]) -> bool {
    method.first() == Some(&b'_') || canonical(method).is_some()
}

/// Whether the stable v1 protocol has this method.
pub fn is_canonical(method: &str) -> bool {
    canonical(method.as_bytes()).is_some()
}

/// Whether ACP v1 or v2 has this method, or a built-in table reads it as a notification of an agent.
pub fn is_defined(method: &str) -> bool {
    is_canonical(method) || OTHERS.contains(&method)
}

/// The name of that canonical method.
fn canonical(method: &[u8]) -> Option<&'static str> {
    number(method).map(|number| CANONICAL[number])
}

/// The position of that canonical method in the list.
pub(super) fn number(method: &[u8]) -> Option<usize> {
    CANONICAL.iter().position(|name| name.as_bytes() == method)
}

/// How many canonical methods there are.
pub(super) const METHODS: usize = 25;

/// The most frequent ones come first.
pub(super) const CANONICAL: [&str; METHODS] = [
    "session/update",
    "session/prompt",
    "session/request_permission",
    "$/cancel_request",
    "authenticate",
    "elicitation/complete",
    "elicitation/create",
    "fs/read_text_file",
    "fs/write_text_file",
    "initialize",
    "logout",
    "session/cancel",
    "session/close",
    "session/delete",
    "session/list",
    "session/load",
    "session/new",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "terminal/create",
    "terminal/kill",
    "terminal/output",
    "terminal/release",
    "terminal/wait_for_exit",
];

/// The methods that only v2 has, and agents' notifications of built-in tables.
const OTHERS: [&str; 6] = [
    "auth/login",
    "auth/logout",
    "tool_call/cancel",
    "$/cancelRequest",
    "_kiro.dev/commands/available",
    "_x.ai/models/update",
];
