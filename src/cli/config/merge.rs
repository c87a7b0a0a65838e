//! The effective options of `serve`: flags override variables, which override the file.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches as _};

use super::keys::{Keys, contradict};
use super::model::Config;
use crate::cli::serve::{Overrides, Serve};
use crate::cli::telemetry::LogArgs;

/// Lists to which flags add, and which they do not replace.
const ADDED_TO: [&str; 3] = [
    "record.redact-pointer",
    "dialects.tables",
    "dialects.folders",
];

/// A parsed command line, with the definition of its subcommand.
pub(in crate::cli) struct CommandLine {
    command: Command,
    matches: ArgMatches,
}

impl CommandLine {
    /// The part for the subcommand of these names, which was given.
    pub(in crate::cli) fn of(command: &Command, matches: &ArgMatches, names: &[&str]) -> Self {
        let (mut command, mut matches) = (command, matches);
        for name in names {
            matches = matches.subcommand_matches(name).expect("it was asked for");
            command = command.find_subcommand(name).expect("it was asked for");
        }
        Self {
            command: command.clone().no_binary_name(true),
            matches: matches.clone(),
        }
    }

    /// The flag or the variable that sets the option `id`, if one does.
    pub(super) fn source(&self, id: &str) -> Option<String> {
        let mut flags = self.command.get_arguments();
        let flag = flags.find(|flag| flag.get_id() == id)?;
        match self.matches.value_source(id)? {
            ValueSource::CommandLine => Some(match flag.get_long() {
                Some(long) => format!("--{long}"),
                None => "command line".to_owned(),
            }),
            ValueSource::EnvVariable => {
                let name = flag.get_env().unwrap_or_default();
                Some(format!("${}", name.to_string_lossy()))
            }
            _ => None,
        }
    }

    /// The values that a flag or a variable gives the option `id`, if one does.
    pub(super) fn values(&self, id: &str) -> Option<Vec<OsString>> {
        self.source(id)?;
        let values = self.matches.get_raw(id)?;
        Some(values.map(OsString::from).collect())
    }

    /// The options of `serve` over the keys of a file, as they were given. A key gives way to a flag
    /// that contradicts it.
    pub(super) fn over(&self, file: &Keys) -> Keys {
        let mut keys = file.without(&self.command);
        for arg in self.command.get_arguments() {
            let id = arg.get_id().as_str();
            let given = self.values(id);
            let mut values: Vec<OsString> = Vec::new();
            let contradicted = || {
                let mut others = self.command.get_arguments();
                others.any(|other| {
                    self.source(other.get_id().as_str()).is_some()
                        && contradict(&self.command, arg, other)
                })
            };
            if let Some(own) = file.get(id)
                && (given.is_none() || ADDED_TO.contains(&id))
                && !contradicted()
            {
                values.extend_from_slice(own);
            }
            values.extend(given.into_iter().flatten());
            if !values.is_empty() {
                keys.push(id, values);
            }
        }
        keys
    }

    /// The effective options of `serve` and of the log.
    ///
    /// # Errors
    /// The options of the file and those of the command line cannot be combined.
    pub(in crate::cli) fn effective(&self, file: &Config) -> Result<(Serve, LogArgs), clap::Error> {
        let mut arguments = self.over(&file.keys).arguments(&self.command);
        if let Some(command) = self.matches.get_raw("command") {
            arguments.push("--".into());
            arguments.extend(command.map(OsString::from));
        }
        let matches = self.command.clone().try_get_matches_from(arguments)?;
        let mut serve = Serve::from_arg_matches(&matches)?;
        let given = |id| self.source(id).is_some();
        serve.overrides = Overrides {
            on_disconnect: given("on-disconnect").then_some(serve.on_disconnect.action),
            default_permission: serve
                .agent_connect
                .as_ref()
                .filter(|_| given("agent-connect.default-permission"))
                .map(|args| args.default_permission),
        };
        serve.admission.certificates = file.certificates.clone();
        Ok((serve, LogArgs::from_arg_matches(&matches)?))
    }
}
