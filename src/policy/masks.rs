//! What is not announced across the border, because it would not be allowed.
//!
//! Not here: refusing what is used although it was not announced (see `rules`).

use super::rules::Rules;
use crate::dialect::Body;

/// Capabilities of a client by where they stand in `initialize`, with the call that uses them.
const CAPABILITIES: [(&[&str], &str); 4] = [
    (&["terminal"], "terminal/create"),
    (&["fs", "readTextFile"], "fs/read_text_file"),
    (&["fs", "writeTextFile"], "fs/write_text_file"),
    (&["elicitation"], "elicitation/create"),
];

/// Ways to log in by running a program that the agent names: on this machine, and in our place.
/// The second is how they were announced before they were in the protocol.
const TERMINAL_LOGINS: [&[&str]; 3] = [
    &["auth", "terminal"],
    &["_meta", "terminal-auth"],
    &["_meta", "terminal_auth"],
];

/// Leaves out of a client's `initialize` what its agent may not use; says what.
pub(super) fn hide(body: &mut Body<'_>, rules: &Rules) -> Vec<String> {
    let mut hidden = Vec::new();
    let mut hide = |way: &[&str]| {
        let whole = [&["clientCapabilities"], way].concat();
        if body.remove(&whole, |_| true) > 0 {
            hidden.push(way.join("."));
        }
    };
    for (way, method) in CAPABILITIES {
        if rules.judge(method, true).is_err() {
            hide(way);
        }
    }
    if rules.guarded {
        TERMINAL_LOGINS.iter().for_each(|way| hide(way));
    }
    hidden
}

/// Leaves out of an agent's logins, which stand at a place in its answer to `initialize` or in an
/// error, those that run a program of its choice; says how many.
pub(super) fn strip_logins(body: &mut Body<'_>, place: &[&str]) -> usize {
    if place.is_empty() {
        return 0;
    }
    let runs = |method: &mut Body<'_>| {
        let mut is_terminal = |way| method.strings(way).iter().any(|kind| kind == "terminal");
        is_terminal(&["type"]) || is_terminal(&["_meta", "type"])
    };
    let mut count = body.remove(&[place, &["*"]].concat(), runs);
    for name in ["terminal-auth", "terminal_auth"] {
        count += body.remove(&[place, &["*", "_meta", name]].concat(), |_| true);
    }
    count
}
