//! How an option's declaration reads the values of its key.

use std::any::TypeId;
use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Args, Command, ValueHint};

use crate::cli::admin::AdminAddress;
use crate::cli::limits::Setting;
use jsonrpc::did_you_mean;
use transport::Endpoint;

/// The name and the value of a variable.
pub(super) type Variable = (OsString, OsString);

/// The form of a key's value in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// true or false; a flag without a value on the command line.
    Flag,
    /// true or false.
    Bool,
    Text,
    /// A text, or true: an option whose value can be left out.
    TextOrTrue,
    /// A text or a number.
    Number,
    /// A list of texts.
    List,
    /// Variables: a table of texts and numbers with any keys. Each value is `NAME=VALUE`.
    Map,
}

/// A command with the options of `A`, without their variables.
pub(super) fn command<A: Args>() -> Command {
    let command = Command::new("file");
    A::augment_args(command.disable_help_flag(true)).mut_args(|arg| arg.env(Resettable::Reset))
}

/// The table and the key of an option's id; the table is empty for keys before all tables.
pub(super) fn path(id: &str) -> (&str, &str) {
    id.rsplit_once('.').unwrap_or(("", id))
}

/// The form of an option's value.
pub(super) fn form(arg: &Arg) -> Form {
    let is = |id: TypeId| arg.get_value_parser().type_id() == id;
    match arg.get_action() {
        ArgAction::SetTrue => Form::Flag,
        _ if is(TypeId::of::<Variable>()) => Form::Map,
        ArgAction::Append => Form::List,
        _ if is(TypeId::of::<bool>()) => Form::Bool,
        _ if is(TypeId::of::<Setting>()) || is(TypeId::of::<usize>()) => Form::Number,
        _ if arg
            .get_num_args()
            .is_some_and(|count| count.min_values() == 0) =>
        {
            Form::TextOrTrue
        }
        _ => Form::Text,
    }
}

/// What the help calls an option's value.
pub(super) fn value_name(arg: &Arg) -> &str {
    let names = arg.get_value_names().unwrap_or_default();
    names.first().map_or("", |name| name.as_str())
}

/// The names of the values, if the option has only certain ones.
pub(super) fn values(arg: &Arg) -> Vec<String> {
    let values = arg.get_possible_values().into_iter();
    let values = values.filter(|value| !value.is_hide_set());
    values.map(|value| value.get_name().to_owned()).collect()
}

/// The value of an option that is not given.
pub(super) fn default(arg: &Arg) -> Vec<OsString> {
    let values = arg.get_default_values().iter();
    values.map(|value| value.to_os_string()).collect()
}

/// Reads a value of an option, and writes it in the usual way: relative paths start at `folder`, a
/// limit has its unit, and an address all its parts.
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
    // The parser of the option, without the rules that concern other options; clap runs it only
    // for a command.
    let value = Arg::new("value").value_parser(arg.get_value_parser().clone());
    let alone = Command::new("file").arg(value.default_value(text.to_owned()));
    let read = alone
        .try_get_matches_from([""; 0])
        .map_err(|error| match error.source() {
            Some(what) => what.to_string(),
            None => error.kind().to_string(),
        })?;
    if form(arg) == Form::TextOrTrue && text == "true" {
        return Ok(text.into());
    }
    if is_path {
        return Ok(folder.join(text).into());
    }
    if let Ok(Some(at)) = read.try_get_one::<Endpoint>("value") {
        return Ok(at.clone().relative_to(folder).to_string().into());
    }
    if let Ok(Some(at)) = read.try_get_one::<AdminAddress>("value") {
        return Ok(at.relative_to(folder).to_string().into());
    }
    if let Ok(Some(setting)) = read.try_get_one::<Setting>("value") {
        return Ok(setting.limit.text(setting.value).into());
    }
    Ok(text.into())
}
