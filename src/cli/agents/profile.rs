//! The commands of well-known agents.
//!
//! They are those of the ACP registry (github.com/agentclientprotocol/registry), for programs that
//! can be installed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::auth;
use crate::jsonrpc::did_you_mean;
use crate::transport::Launch;

/// How a well-known agent is started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct Profile {
    pub(in crate::cli) name: String,
    /// Other names of the agent.
    #[serde(default)]
    pub(in crate::cli) aliases: Vec<String>,
    pub(in crate::cli) title: String,
    /// Program and arguments.
    pub(in crate::cli) command: Vec<String>,
    /// The variables it needs.
    #[serde(default)]
    pub(in crate::cli) env: BTreeMap<String, String>,
    /// The mapping table that it usually needs.
    pub(in crate::cli) dialect: Option<String>,
    /// How to install it, as a command or an address.
    pub(in crate::cli) install: String,
}

/// An agent that is started as a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Program {
    pub(in crate::cli) argv: Vec<OsString>,
    pub(in crate::cli) launch: Launch,
    /// How to install it, if known.
    pub(in crate::cli) install: Option<String>,
}

/// All profiles.
pub(super) fn all() -> &'static [Profile] {
    static ALL: LazyLock<Vec<Profile>> = LazyLock::new(|| {
        let all = serde_json::from_str(include_str!("profiles.json"));
        all.expect("profiles.json is a list of profiles")
    });
    &ALL
}

/// Rejects a text that cannot be the name of an agent. Clients use it in the path of an address, so
/// it has only characters that need no escape there, and cannot be mistaken for a folder.
///
/// # Errors
/// Why, as a clause.
pub(in crate::cli) fn check_name(name: &str) -> Result<(), &'static str> {
    match auth::check_name(name) {
        Ok(()) if !name.contains('@') && !name.contains("..") => Ok(()),
        _ => Err(
            "it has letters, digits and - _ ., begins with a letter or a digit, has no two dots in \
             a row, and 64 characters at most",
        ),
    }
}

/// The profile of that name.
pub(in crate::cli) fn profile(name: &str) -> Option<&'static Profile> {
    let known = |of: &&Profile| of.name == name || of.aliases.iter().any(|alias| alias == name);
    all().iter().find(known)
}

/// The names of all, for "did you mean".
pub(in crate::cli) fn profile_names() -> impl Iterator<Item = &'static str> {
    let names = |of: &'static Profile| std::iter::once(&of.name).chain(&of.aliases);
    all().iter().flat_map(names).map(String::as_str)
}

/// Parses `--profile`.
pub(in crate::cli) fn read_profile(name: &str) -> Result<&'static Profile, String> {
    profile(name).ok_or_else(|| {
        let remedy = did_you_mean(name, profile_names(), "`acp-relay agents list` lists them");
        format!("there is no profile called `{name}`; {remedy}")
    })
}

impl Profile {
    /// The program to start.
    pub(in crate::cli) fn program(&self) -> Program {
        let env = self.env.iter();
        let env = env.map(|(name, value)| (name.into(), value.into()));
        Program {
            argv: self.command.iter().map(OsString::from).collect(),
            launch: Launch {
                env: env.collect(),
                ..Launch::default()
            },
            install: Some(self.install.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Library;

    #[test]
    fn profiles_are_complete_with_unique_names() {
        let library = Library::builtin();
        let mut names = std::collections::HashSet::new();
        for profile in all() {
            let name = &profile.name;
            assert!(!profile.command.is_empty(), "{name}");
            assert!(!profile.command[0].contains('/'), "{name}: not on PATH");
            assert!(!profile.install.is_empty(), "{name}");
            if let Some(dialect) = &profile.dialect {
                assert!(library.table(dialect).is_ok(), "{name}: {dialect}");
            }
            for name in std::iter::once(name).chain(&profile.aliases) {
                assert_eq!(check_name(name), Ok(()), "{name}");
                assert!(names.insert(name), "{name} occurs twice");
            }
        }
    }
}
