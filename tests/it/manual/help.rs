//! The definition of the command line, as the manual describes it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use acp_relay::jsonrpc::Limits;
use acp_relay::jsonrpc::limits::LIMITS;
use clap::{Arg, ArgAction, Command};

/// Flags that every subcommand has.
const COMMON_FLAGS: [&str; 3] = ["--help", "--log", "--log-format"];

/// Every subcommand, by its command line.
pub(crate) static COMMANDS: LazyLock<Vec<(String, Command)>> = LazyLock::new(|| {
    let mut root = acp_relay::cli::command();
    root.build();
    let mut found = Vec::new();
    collect(&root, "", &mut found);
    assert!(found.len() > 30, "only {} found", found.len());
    found
});

/// A flag.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flag {
    pub(crate) name: String,
    /// `--record DIR`.
    pub(super) form: String,
    /// The first paragraph of its help, and its default.
    pub(super) about: String,
    pub(super) values: Vec<String>,
    pub(super) variable: Option<String>,
}

fn collect(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    found.push((path.to_owned(), command.clone()));
    // clap adds a `help` to each command with subcommands.
    let is_own =
        |below: &&Command| !below.is_hide_set() && (path.is_empty() || below.get_name() != "help");
    for below in command.get_subcommands().filter(is_own) {
        let path = format!("{path} {}", below.get_name());
        collect(below, path.trim_start(), found);
    }
}

/// The flags of a command, without those that every subcommand has.
pub(crate) fn flags(command: &Command) -> Vec<Flag> {
    let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let flags = flags.filter_map(|arg| Some(flag(arg, arg.get_long()?)));
    flags
        .filter(|flag| !COMMON_FLAGS.contains(&&*flag.name))
        .collect()
}

fn flag(arg: &Arg, long: &str) -> Flag {
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let value = arg.get_value_names().unwrap_or_default();
    let value = value.iter().filter(|_| takes_value);
    let form = value.fold(format!("--{long}"), |form, value| format!("{form} {value}"));
    let about = arg.get_help().unwrap().to_string();
    let usual = arg.get_default_values().iter();
    let about = usual.filter(|_| takes_value).fold(about, |about, usual| {
        format!("{about} [default: {}]", usual.to_str().unwrap())
    });
    let values = arg.get_possible_values().into_iter();
    let is_listed = takes_value && !arg.is_hide_possible_values_set();
    let values =
        values.filter(|value| is_listed && !value.is_hide_set() && value.get_help().is_some());
    Flag {
        name: format!("--{long}"),
        form,
        about,
        values: values.map(|value| value.get_name().to_owned()).collect(),
        variable: arg.get_env().map(|name| name.to_str().unwrap().to_owned()),
    }
}

pub(super) fn known_flags() -> BTreeSet<String> {
    let names = COMMANDS.iter().flat_map(|(_, command)| flags(command));
    let names = names.map(|flag| flag.name);
    names.chain(COMMON_FLAGS.map(str::to_owned)).collect()
}

/// The names, defaults and meanings of limits.
pub(super) fn limits() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    let defaults = Limits::default();
    let text = move |limit: &jsonrpc::limits::Limit| limit.text(limit.get(&defaults));
    LIMITS
        .iter()
        .map(move |limit| (&*limit.name, text(limit), limit.about))
}
