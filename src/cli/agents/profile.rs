//! The commands of well-known agents.
//!
//! They are those of the ACP registry (github.com/agentclientprotocol/registry), for programs that
//! can be installed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::cli::state::{self, StateDir};
use crate::cli::stderr;
use jsonrpc::did_you_mean;
use transport::Launch;

/// The file of the imported profiles in the state directory.
pub(super) const IMPORTED: &str = "imported-agents.json";

/// How a well-known agent is started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct Profile {
    pub(in crate::cli) name: String,
    /// Other names of the agent.
    #[serde(default)]
    pub(in crate::cli) aliases: Vec<String>,
    pub(in crate::cli) title: String,
    /// Program and arguments; of an imported agent, none if they are not known.
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

/// The imported profiles; an empty list, with an error on stderr, if their file cannot be used.
pub(super) fn imported() -> &'static [Profile] {
    static IMPORTED_ONES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
        let Ok(state) = StateDir::find() else {
            return Vec::new();
        };
        let path = state.file(IMPORTED);
        let text = state::read(&path).map_err(|fault| fault.to_string());
        let read = text.and_then(|text| match text {
            Some(text) => serde_json::from_str(&text)
                .map_err(|fault| format!("{} is damaged ({fault})", path.display())),
            None => Ok(Vec::new()),
        });
        read.unwrap_or_else(|fault| {
            stderr::print(&format!("acp-relay: imported agents are left out: {fault}"));
            Vec::new()
        })
    });
    &IMPORTED_ONES
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

/// Whether it is the name of a profile that the program contains.
pub(super) fn is_known(name: &str) -> bool {
    all().iter().any(|profile| profile.is_called(name))
}

/// The profile of that name, of those that the program contains or else of the imported ones.
pub(in crate::cli) fn profile(name: &str) -> Option<&'static Profile> {
    find(name).filter(|profile| !profile.command.is_empty())
}

/// The names of all, for "did you mean".
pub(in crate::cli) fn profile_names() -> impl Iterator<Item = &'static str> {
    let names = |of: &'static Profile| std::iter::once(&of.name).chain(&of.aliases);
    all()
        .iter()
        .chain(imported())
        .flat_map(names)
        .map(String::as_str)
}

/// The same, also if its command is not known. What was imported is read when it is needed.
fn find(name: &str) -> Option<&'static Profile> {
    let known = |of: &&Profile| of.is_called(name);
    all()
        .iter()
        .find(known)
        .or_else(|| imported().iter().find(known))
}

/// Parses `--profile`.
pub(in crate::cli) fn read_profile(name: &str) -> Result<&'static Profile, String> {
    match find(name) {
        Some(profile) if !profile.command.is_empty() => Ok(profile),
        Some(profile) => Err(format!(
            "the command of `{name}` is not known; install it ({}), and name its command after `--`",
            profile.install
        )),
        None => {
            let remedy = did_you_mean(name, profile_names(), "`acp-relay agents list` lists them");
            Err(format!("there is no profile called `{name}`; {remedy}"))
        }
    }
}

impl Profile {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

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
    use dialect::Library;

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
