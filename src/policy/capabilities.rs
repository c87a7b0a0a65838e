//! Hides capabilities that the policy would deny from the other side's announcements.

use dialect::MessageBody;

/// Where a client states its capabilities in v1, and in v2.
const STATED: [&str; 2] = ["clientCapabilities", "capabilities"];

/// A client's capabilities by their paths in `initialize`, with the call that uses each.
const CAPABILITIES: [(&[&str], &str); 4] = [
    (&["terminal"], "terminal/create"),
    (&["fs", "readTextFile"], "fs/read_text_file"),
    (&["fs", "writeTextFile"], "fs/write_text_file"),
    (&["elicitation"], "elicitation/create"),
];

/// Ways to log in by running a program that the agent names, on this machine and with our rights.
/// The second and third are how they were announced before they were in the protocol.
const TERMINAL_LOGINS: [&[&str]; 3] = [
    &["auth", "terminal"],
    &["_meta", "terminal-auth"],
    &["_meta", "terminal_auth"],
];

/// How many extensions of a client are remembered.
const MAX_EXTENSIONS: usize = 256;

/// Removes from a client's `initialize` what its agent may not use; returns what was removed.
pub(super) fn hide_capabilities(
    body: &mut MessageBody<'_>,
    is_denied: impl Fn(&str) -> bool,
    is_guarded: bool,
    has_own_files: bool,
) -> Vec<String> {
    let mut hidden = Vec::new();
    let mut hide = |path: &[&str]| {
        let removed = STATED.map(|stated| body.remove(&[&[stated], path].concat(), |_| true));
        if removed != [0; 2] {
            hidden.push(path.join("."));
        }
    };
    let files = CAPABILITIES.iter().filter(|(path, _)| path[0] == "fs");
    if has_own_files && files.clone().all(|(_, method)| is_denied(method)) {
        hide(&["fs"]);
    }
    for (path, method) in CAPABILITIES {
        if is_denied(method) {
            hide(path);
        }
    }
    if is_guarded {
        TERMINAL_LOGINS.iter().for_each(|way| hide(way));
    }
    hidden
}

/// The names of the extensions that a client announces in its `initialize`.
pub(super) fn extensions(body: &mut MessageBody<'_>) -> Vec<String> {
    let mut names = STATED.map(|stated| body.names(&[stated, "_meta"])).concat();
    names.truncate(MAX_EXTENSIONS);
    names
}

/// Removes from an agent's login methods, which are at `place` in its answer to `initialize` or in
/// an error, those that run a program of its choice; returns how many.
pub(super) fn strip_logins(body: &mut MessageBody<'_>, place: &[&str]) -> usize {
    if place.is_empty() {
        return 0;
    }
    // A client that ignores case in names would read it however it is spelled.
    body.ignore_case(true);
    let runs = |method: &mut MessageBody<'_>| {
        let mut is_terminal = |way| method.strings(way).iter().any(|kind| kind == "terminal");
        is_terminal(&["type"]) || is_terminal(&["_meta", "type"])
    };
    let mut count = body.remove(&[place, &["*"]].concat(), runs);
    for name in ["terminal-auth", "terminal_auth"] {
        count += body.remove(&[place, &["*", "_meta", name]].concat(), |_| true);
    }
    body.ignore_case(false);
    count
}
