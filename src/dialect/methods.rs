//! The names of canonical methods, to tell a stranger.
//!
//! A list of its own, because the schema (see `canon`) is never read on a message's path; a test
//! holds the two against each other. Not here: what a method's messages look like.

/// Whether the stable v1 protocol has this method, or leaves the name to extensions.
#[must_use]
pub fn is_known(method: &str) -> bool {
    is_known_raw(method.as_bytes())
}

/// The same of a method as it stands between its quotes; `false` when it is spelled with escapes.
pub(crate) fn is_known_raw(method: &[u8]) -> bool {
    method.first() == Some(&b'_') || is_canonical(method)
}

fn is_canonical(method: &[u8]) -> bool {
    matches!(
        method,
        b"$/cancel_request"
            | b"authenticate"
            | b"elicitation/complete"
            | b"elicitation/create"
            | b"fs/read_text_file"
            | b"fs/write_text_file"
            | b"initialize"
            | b"logout"
            | b"session/cancel"
            | b"session/close"
            | b"session/delete"
            | b"session/list"
            | b"session/load"
            | b"session/new"
            | b"session/prompt"
            | b"session/request_permission"
            | b"session/resume"
            | b"session/set_config_option"
            | b"session/set_mode"
            | b"session/update"
            | b"terminal/create"
            | b"terminal/kill"
            | b"terminal/output"
            | b"terminal/release"
            | b"terminal/wait_for_exit"
    )
}
