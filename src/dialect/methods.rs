//! The names of canonical methods, to tell a stranger.
//!
//! A list of its own, because the schema (see `canon`) is never read on a message's path; a test
//! holds the two against each other. Not here: what a method's messages look like.

/// Whether the stable v1 protocol has this method, or leaves the name to extensions.
#[must_use]
pub fn is_known(method: &str) -> bool {
    method.starts_with('_') || is_canonical(method)
}

fn is_canonical(method: &str) -> bool {
    matches!(
        method,
        "$/cancel_request"
            | "authenticate"
            | "elicitation/complete"
            | "elicitation/create"
            | "fs/read_text_file"
            | "fs/write_text_file"
            | "initialize"
            | "logout"
            | "session/cancel"
            | "session/close"
            | "session/delete"
            | "session/list"
            | "session/load"
            | "session/new"
            | "session/prompt"
            | "session/request_permission"
            | "session/resume"
            | "session/set_config_option"
            | "session/set_mode"
            | "session/update"
            | "terminal/create"
            | "terminal/kill"
            | "terminal/output"
            | "terminal/release"
            | "terminal/wait_for_exit"
    )
}
