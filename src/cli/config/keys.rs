//! Keys with their values as texts, and where each is set. `declared` has their declarations.

use std::ffi::OsString;

use clap::{Args, Command};

use super::option::{Form, command, form, path};
use crate::cli::limits::Setting;
use jsonrpc::limits::Limit;

/// A key with its values.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// The id of its option.
    pub(super) id: String,
    /// Where it is set: a line of the file, a flag or a variable.
    pub(super) from: String,
    /// Texts that the parser of the option accepts.
    pub(super) values: Vec<OsString>,
}

/// Keys by the ids of their options.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Keys(pub(super) Vec<Key>);

impl Keys {
    /// Adds a key, which replaces one of the same id.
    pub(super) fn set(&mut self, key: Key) {
        self.0.retain(|other| other.id != key.id);
        self.0.push(key);
    }

    pub(super) fn get(&self, id: &str) -> Option<&Key> {
        self.0.iter().find(|key| key.id == id)
    }

    /// The keys of a table.
    pub(super) fn of(&self, table: &str) -> impl Iterator<Item = &Key> {
        self.0.iter().filter(move |key| path(&key.id).0 == table)
    }

    /// The limits in a table.
    pub(super) fn settings(&self, table: &str) -> Vec<Setting> {
        let values = self.of(table).filter_map(|key| {
            let limit = Limit::named(path(&key.id).1)?;
            let value = limit.read(key.values.last()?.to_str()?).ok()?;
            Some(Setting { limit, value })
        });
        values.collect()
    }

    /// Whether a table has the same values in `other`.
    pub(in crate::cli) fn has_same(&self, table: &str, other: &Self) -> bool {
        fn values(key: &Key) -> (&str, &[OsString]) {
            (&key.id, &key.values)
        }
        self.of(table).map(values).eq(other.of(table).map(values))
    }

    /// The same as arguments of `command`, which declares them; others are left out.
    pub(super) fn arguments(&self, command: &Command) -> Vec<OsString> {
        let mut arguments = Vec::new();
        for key in &self.0 {
            let (table, name) = path(&key.id);
            let id = if table == "limits" { table } else { &key.id };
            let mut known = command.get_arguments();
            let Some((arg, long)) = known
                .find(|arg| arg.get_id() == id)
                .and_then(|arg| Some((arg, arg.get_long()?)))
            else {
                continue;
            };
            for value in &key.values {
                let mut argument = OsString::from(format!("--{long}"));
                if form(arg) == Form::Flag {
                    if value != "true" {
                        continue;
                    }
                } else {
                    argument.push("=");
                    if table == "limits" {
                        argument.push(format!("{name}="));
                    }
                    argument.push(value);
                }
                arguments.push(argument);
            }
        }
        arguments
    }

    /// The options that these keys set.
    ///
    /// # Errors
    /// One is missing, or two contradict each other.
    pub(super) fn parse<A: Args>(&self) -> Result<A, clap::Error> {
        let command = command::<A>();
        let arguments = self.arguments(&command);
        A::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }
}
