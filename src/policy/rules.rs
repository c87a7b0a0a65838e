//! Which calls of an agent are passed on to the client.
//!
//! Methods denied by name are denied; then methods allowed by name are allowed; otherwise an agent
//! that has files and commands of its own gets none of the client's; otherwise a remote agent may not
//! run commands, and only those of its requests pass that ACP defines for clients, and those of its
//! notifications whose names are known.

use std::path::PathBuf;
use std::str::FromStr;

/// The requests that ACP defines for clients, except those that run commands.
const REQUESTS: [&str; 4] = [
    "session/request_permission",
    "fs/read_text_file",
    "fs/write_text_file",
    "elicitation/create",
];

/// How the names of the notifications begin that relays add.
const OF_RELAYS: &str = "_acp-relay/";

/// The rules for an agent's calls.
#[derive(Clone, Debug, Default)]
pub struct PolicyRules {
    /// The agent is remote: it may not run commands, and only access the session's files.
    pub guarded: bool,
    /// Methods that are allowed.
    pub allow: Vec<MethodPattern>,
    /// Methods that are denied, even if they are allowed too.
    pub deny: Vec<MethodPattern>,
    /// Folders it may access besides the session's.
    pub roots: Vec<PathBuf>,
}

/// Methods by name (`fs/write_text_file`) or by prefix (`terminal/*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodPattern {
    text: String,
    whole: bool,
}

impl PolicyRules {
    /// Whether they allow everything.
    pub(super) const fn is_open(&self) -> bool {
        !self.guarded && self.deny.is_empty()
    }

    /// Checks whether the agent may call `method` of the client; `is_request` is whether it waits
    /// for an answer, `has_own_files` whether it uses the files and commands of its own machine;
    /// `extensions` are the names in the `_meta` of the client's capabilities.
    ///
    /// # Errors
    /// The reason if not, with what to do about it.
    pub(super) fn check(
        &self,
        method: &str,
        is_request: bool,
        has_own_files: bool,
        extensions: &[String],
    ) -> Result<(), String> {
        let named = |list: &[MethodPattern]| list.iter().any(|pattern| pattern.matches(method));
        if named(&self.deny) {
            return Err(format!("{method} is denied (--deny)"));
        }
        if named(&self.allow) {
            return Ok(());
        }
        if has_own_files && ["fs/", "terminal/"].iter().any(|of| method.starts_with(of)) {
            return Err(format!(
                "{method} is denied: the agent uses the files and commands of its own machine, not \
                 of the editor's; there, --files editor opens the editor's files, and --allow \
                 METHOD one kind of access (--allow 'fs/*', --allow 'terminal/*')"
            ));
        }
        if !self.guarded {
            return Ok(());
        }
        let (why, option) = if method.starts_with("terminal/") {
            let why = "a guarded agent may not run commands on this machine";
            (why, "--allow 'terminal/*'".to_owned())
        } else if is_request && !REQUESTS.contains(&method) {
            let why = "a guarded agent may only send requests that ACP defines for clients";
            (why, "--allow METHOD".to_owned())
        } else if is_request || is_known(method, extensions) {
            return Ok(());
        } else {
            let why = "a guarded agent may only send notifications that ACP, a built-in dialect or \
                       the client's capabilities know";
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
            let is_plain = method.chars().all(is_plain);
            let name = if is_plain { method } else { "METHOD" };
            (why, format!("--allow {name}"))
        };
        let never = "--guard never trusts the agent";
        Err(format!("{method} is denied: {why} ({option}; {never})"))
    }
}

/// Whether an agent's notification has a name that is known: an extension of the client, `x.ai`, is
/// in the method `_x.ai` and in those that begin with `_x.ai/`.
fn is_known(method: &str, extensions: &[String]) -> bool {
    let is_in = |extension: &String| {
        let own = method.strip_prefix('_').unwrap_or(method);
        let extension = extension.strip_prefix('_').unwrap_or(extension);
        let rest = own.strip_prefix(extension);
        !extension.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    dialect::is_defined(method) || method.starts_with(OF_RELAYS) || extensions.iter().any(is_in)
}

impl MethodPattern {
    fn matches(&self, method: &str) -> bool {
        if self.whole {
            method == self.text
        } else {
            method.starts_with(&self.text)
        }
    }
}

impl FromStr for MethodPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (text, whole) = match text.strip_suffix('*') {
            Some(start) => (start, false),
            None => (text, true),
        };
        if text.contains(|c: char| c == ',' || c.is_whitespace()) {
            return Err("one method each: repeat the option".to_owned());
        }
        if text.contains('*') || whole && text.is_empty() {
            return Err("expected a method, or its beginning and `*`: terminal/*".to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_method_is_read_with_a_star_at_the_end() {
        assert!("*".parse::<MethodPattern>().is_ok());
        for bad in ["", "*/x", "a*b", "**", "fs/*,terminal/*", "a b", "a "] {
            assert!(bad.parse::<MethodPattern>().is_err(), "{bad}");
        }
    }
}
