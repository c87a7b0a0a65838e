//! Keys with their values as texts, and where each is set. `declared` has their declarations.

use std::ffi::OsString;

use clap::{Arg, Args, Command};

use super::option::{command, path};
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

    /// The options that these keys set. Their values become the defaults of the declarations, and
    /// there are no arguments.
    ///
    /// # Errors
    /// One is missing.
    pub(super) fn parse<A: Args>(&self) -> Result<A, String> {
        let declared = command::<A>();
        let values = |id: &str| self.get(id).map_or(&[][..], |key| &key.values);
        let options = declared.get_arguments().map(|arg| {
            let arg = arg.clone().required(false);
            match values(arg.get_id().as_str()) {
                [] => arg,
                values => arg.default_values(values),
            }
        });
        // clap does not count a group as given because of defaults, so an option has its name.
        let groups = declared.get_groups().map(|group| {
            let id = group.get_id().to_string();
            let is_set = group.get_args().any(|id| !values(id.as_str()).is_empty());
            let arg = Arg::new(id.clone()).long(id);
            arg.default_values(is_set.then_some("true"))
        });
        let command = Command::new("keys").args(options).args(groups);
        let made = command.try_get_matches_from([""; 0]);
        let made = made.and_then(|matches| A::from_arg_matches(&matches));
        made.map_err(|error| error.to_string())
    }
}

impl Key {
    /// The same values under another id.
    pub(super) fn named(&self, id: &str) -> Self {
        let id = id.to_owned();
        Self { id, ..self.clone() }
    }
}
