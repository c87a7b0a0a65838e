//! Values of keys as texts, and how a declaration reads them. `declared` has the declarations.

use std::any::TypeId;
use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Args, Command, ValueHint};

use super::nearest::did_you_mean;
use crate::cli::admin::AdminAddress;
use crate::cli::limits::Setting;
use crate::jsonrpc::limits::Limit;

/// The two limits in `[drain]`, by the ids that they have there.
pub(super) const DRAIN: [(&str, &str); 2] = [("drain.min", "drain-min"), ("drain.max", "drain")];

/// The name and the value of a variable.
pub(super) type Variable = (OsString, OsString);

/// Values of keys by the ids of their options, as texts that the parsers of the options accept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Keys(Vec<(String, Vec<OsString>)>);

/// The form of a key's value in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// true or false; a flag without a value on the command line.
    Flag,
    /// true or false.
    Bool,
    Text,
    /// A text or a number.
    Number,
    /// A list of texts.
    List,
    /// Variables: a table of texts and numbers with any keys. Each value is `NAME=VALUE`.
    Map,
}

impl Keys {
    pub(super) fn push(&mut self, id: &str, values: Vec<OsString>) {
        self.0.push((id.to_owned(), values));
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// The values of one key.
    pub(super) fn get(&self, id: &str) -> Option<&[OsString]> {
        let mut keys = self.0.iter();
        keys.find(|(name, _)| name == id)
            .map(|(_, values)| &values[..])
    }

    /// The keys of a table.
    pub(super) fn of(&self, table: &str) -> impl Iterator<Item = &(String, Vec<OsString>)> {
        self.0.iter().filter(move |(id, _)| path(id).0 == table)
    }

    /// The limits in a table.
    pub(super) fn settings(&self, table: &str) -> Vec<Setting> {
        let values = self.of(table).filter_map(|(id, values)| {
            let drain = DRAIN.iter().find(|(own, _)| own == id);
            let limit = Limit::named(drain.map_or_else(|| path(id).1, |(_, name)| name))?;
            let value = limit.read(values.last()?.to_str()?).ok()?;
            Some(Setting { limit, value })
        });
        values.collect()
    }

    /// Whether a table has the same values in `other`.
    pub(in crate::cli) fn has_same(&self, table: &str, other: &Self) -> bool {
        self.of(table).eq(other.of(table))
    }

    /// The keys that are no options of `command`.
    pub(super) fn without(&self, command: &Command) -> Self {
        let is_option = |id: &String| command.get_arguments().any(|arg| arg.get_id() == id);
        let keys = self.0.iter().filter(|(id, _)| !is_option(id));
        Self(keys.cloned().collect())
    }

    /// The same as arguments of `command`, which declares them; others are left out.
    pub(super) fn arguments(&self, command: &Command) -> Vec<OsString> {
        let mut arguments = Vec::new();
        for (id, values) in &self.0 {
            let arg = command.get_arguments().find(|arg| arg.get_id() == id);
            let Some((arg, long)) = arg.and_then(|arg| Some((arg, arg.get_long()?))) else {
                continue;
            };
            for value in values {
                let mut argument = OsString::from(format!("--{long}"));
                match form(arg) {
                    Form::Flag if value != "true" => continue,
                    Form::Flag => {}
                    _ => {
                        argument.push("=");
                        argument.push(value);
                    }
                }
                arguments.push(argument);
            }
        }
        arguments
    }

    /// The options that these keys set; `None` if one is missing.
    pub(super) fn parse<A: Args>(&self) -> Option<A> {
        let command = command::<A>();
        let arguments = self.arguments(&command);
        let matches = command.try_get_matches_from(arguments).ok()?;
        A::from_arg_matches(&matches).ok()
    }
}

/// A command with the options of `A`, without their variables.
pub(super) fn command<A: Args>() -> Command {
    let command = Command::new("file").no_binary_name(true);
    A::augment_args(command.disable_help_flag(true)).mut_args(|arg| arg.env(Resettable::Reset))
}

/// The table and the key of an option's id; the table is empty for keys before all tables.
pub(super) fn path(id: &str) -> (&str, &str) {
    id.rsplit_once('.').unwrap_or(("", id))
}

/// The form of an option's value.
pub(super) fn form(arg: &Arg) -> Form {
    match arg.get_action() {
        ArgAction::SetTrue => Form::Flag,
        _ if is::<Variable>(arg) => Form::Map,
        ArgAction::Append => Form::List,
        _ if is::<bool>(arg) => Form::Bool,
        _ if is::<Setting>(arg) => Form::Number,
        _ => Form::Text,
    }
}

/// Whether an option's values are of this type.
pub(super) fn is<T: 'static>(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<T>()
}

/// What the help calls an option's value.
pub(super) fn value_name(arg: &Arg) -> &str {
    let names = arg.get_value_names().unwrap_or_default();
    names.first().map_or("", |name| name.as_str())
}

/// The names of the values, if the option has only certain ones.
pub(super) fn values(arg: &Arg) -> Vec<String> {
    let values = arg.get_possible_values().into_iter();
    values.map(|value| value.get_name().to_owned()).collect()
}

/// The value of an option that is not given.
pub(super) fn default(arg: &Arg) -> Vec<OsString> {
    let values = arg.get_default_values().iter();
    values.map(|value| value.to_os_string()).collect()
}

/// Whether `command` forbids two options together.
pub(super) fn contradict(command: &Command, one: &Arg, other: &Arg) -> bool {
    let forbids = |one, other: &Arg| {
        let mut others = command.get_arg_conflicts_with(one).into_iter();
        others.any(|found| found.get_id() == other.get_id())
    };
    forbids(one, other) || forbids(other, one)
}

/// Parses `NAME=VALUE`, from a file that has both apart.
pub(super) fn read_variable(text: &str) -> Result<Variable, &'static str> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

/// Reads a value of an option from the file. Relative paths start at `folder`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(arg: &Arg, text: &str, folder: &Path) -> Result<OsString, String> {
    let known = values(arg);
    if !known.is_empty() && !known.iter().any(|value| value == text) {
        let otherwise = format!("expected one of {}", known.join(", "));
        let remedy = did_you_mean(text, known.iter().map(String::as_str), &otherwise);
        return Err(format!("`{text}` is not known; {remedy}"));
    }
    let is_path = arg.get_value_hint() == ValueHint::AnyPath;
    if is_path && text.is_empty() {
        return Err("an empty path".to_owned());
    }
    // The parser of the option, without the rules that concern other options.
    let value = Arg::new("value").long("value");
    let alone = Command::new("file").no_binary_name(true);
    let alone = alone.arg(value.value_parser(arg.get_value_parser().clone()));
    if let Err(error) = alone.try_get_matches_from([format!("--value={text}")]) {
        return Err(match error.source() {
            Some(what) => what.to_string(),
            None => error.kind().to_string(),
        });
    }
    Ok(match text.strip_prefix("unix:") {
        _ if is_path => folder.join(text).into(),
        Some(path) if is::<AdminAddress>(arg) => {
            let mut socket = OsString::from("unix:");
            socket.push(folder.join(path));
            socket
        }
        _ => text.into(),
    })
}
