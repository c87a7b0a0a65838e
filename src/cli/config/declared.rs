//! The tables of the file and their keys. The reader, `config show`, the example and the JSON
//! Schema are made from them.
//!
//! An option is declared once, as a field of a `clap::Args` struct: its meaning, flag, variable,
//! form, values and default. The field's id is the path of its key in the file, such as
//! `record.max-age`. A key that is no flag is a field of a struct that no subcommand has. Limits
//! are declared in `jsonrpc::limits`, and become options here.

use std::any::TypeId;
use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Args, Command, ValueHint};

use super::model::{AgentPart, FileOptions, ListenerPart, Variable};
use super::nearest::did_you_mean;
use crate::cli::admin::AdminAddress;
use crate::cli::limits::Setting;
use crate::jsonrpc::Limits;
use crate::jsonrpc::limits::{LIMITS, Limit};
use crate::transport::Endpoint;

/// The two limits in `[drain]`: their ids there and in `[limits]`.
pub(super) const DRAIN: [(&str, &str); 2] = [
    ("drain.min", "limits.drain-min"),
    ("drain.max", "limits.drain"),
];

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    /// The path of its keys.
    pub(super) path: &'static str,
    pub(super) count: Count,
    /// Its first line in the example.
    pub(super) heading: &'static str,
    /// What it is about.
    pub(super) about: &'static str,
}

/// How many tables of a kind there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// One at most.
    One,
    /// Any number, with names.
    Named,
    /// Any number, in order.
    Array,
}

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

/// All tables.
pub(super) static TABLES: [Table; 14] = [
    table("", "", "The configuration of `acp-relay serve`"),
    table(
        "agents",
        "[agents.claude]",
        "Agents. Clients select one by name in the address, /agents/NAME/acp; only this file says \
         what is run. A name consists of letters, digits, `-`, `_` and `.`",
    ),
    table(
        "agents.limits",
        "[agents.claude.limits]",
        "Limits of this agent; those of listeners are only in [limits]",
    ),
    table(
        "listeners",
        "[[listeners]]",
        "Listeners. The default is one at ws://127.0.0.1:0",
    ),
    table(
        "auth",
        "[auth]",
        "Authentication: on this machine its own user is admitted, from other machines clients \
         with a token (`acp-relay token new`) or a certificate. A token may be valid for some \
         agents only",
    ),
    table(
        "auth.certificates",
        "[auth.certificates.\"ci.example\"]",
        "The names accepted in certificates, and the agents that each may use; all agents if none \
         are listed. Without such tables every certificate of the authorities in `tls-client-ca` \
         is accepted, for every agent",
    ),
    table(
        "record",
        "[record]",
        "Every conversation in a file of its own, with secrets redacted",
    ),
    table("admin", "[admin]", "Monitoring"),
    table(
        "agent-connect",
        "[agent-connect]",
        "Listeners for AGNTCY's Agent Connect, agent-connect+http:// and agent-connect+https://",
    ),
    table("dialects", "[dialects]", "The user's own mapping tables"),
    table(
        "traces",
        "[traces]",
        "Traces of conversations. The OTEL_* variables have the other options",
    ),
    table("log", "[log]", "The log on stderr"),
    table("limits", "[limits]", "Limits"),
    table(
        "drain",
        "[drain]",
        "Stopping: listeners stay open for `min` and refuse clients, so that balancers notice; \
         running turns may take until `max`",
    ),
];

/// The declarations of all keys.
pub(super) static DECLARED: LazyLock<Command> = LazyLock::new(|| {
    let parts = [
        command::<FileOptions>(),
        command::<AgentPart>(),
        command::<ListenerPart>(),
    ];
    let options = parts.iter().flat_map(Command::get_arguments).cloned();
    let agents = Arg::new("auth.certificates.agents").value_name("AGENT");
    let agents = agents.help("The agents that its owner may use; all by default");
    let of_agents = LIMITS.iter().filter(|limit| !limit.is_of_listeners);
    let of_agents = of_agents.map(|limit| option(format!("agents.limits.{}", limit.name), limit));
    let all = LIMITS.iter();
    let all = all.map(|limit| option(format!("limits.{}", limit.name), limit));
    let drain = DRAIN.iter().filter_map(|(id, limit)| {
        let limit = Limit::named(path(limit).1)?;
        Some(option((*id).to_owned(), limit))
    });
    Command::new("file")
        .args(options)
        .arg(agents.action(ArgAction::Append))
        .args(of_agents.chain(all).chain(drain))
});

/// The tables with options of the whole file.
pub(super) fn sections() -> impl Iterator<Item = &'static Table> {
    let below = tables_in("").map(|(_, table)| table);
    below.filter(|table| table.count == Count::One)
}

/// The keys of a table, with their declarations.
pub(super) fn declared(table: &str) -> impl Iterator<Item = (&'static str, &'static Arg)> {
    let all = DECLARED.get_arguments();
    all.filter_map(move |arg| {
        let (own, key) = path(arg.get_id().as_str());
        (own == table).then_some((key, arg))
    })
}

/// The tables in a table, by their keys there.
pub(super) fn tables_in(table: &str) -> impl Iterator<Item = (&'static str, &'static Table)> {
    TABLES.iter().filter_map(move |below| {
        let (own, key) = path(below.path);
        (own == table && !key.is_empty()).then_some((key, below))
    })
}

const fn table(path: &'static str, heading: &'static str, about: &'static str) -> Table {
    let count = match path.as_bytes() {
        b"agents" | b"auth.certificates" => Count::Named,
        b"listeners" => Count::Array,
        _ => Count::One,
    };
    Table {
        path,
        count,
        heading,
        about,
    }
}

/// A limit as an option.
fn option(id: String, limit: &'static Limit) -> Arg {
    // clap takes only names that live as long as the program.
    let (id, usual) = (id.leak(), limit.text(limit.get(&Limits::default())).leak());
    let read = move |text: &str| limit.read(text).map(|value| Setting { limit, value });
    let arg = Arg::new(&*id).help(limit.about).default_value(&*usual);
    arg.value_parser(read)
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
    let is = |id: TypeId| arg.get_value_parser().type_id() == id;
    match arg.get_action() {
        ArgAction::SetTrue => Form::Flag,
        _ if is(TypeId::of::<Variable>()) => Form::Map,
        ArgAction::Append => Form::List,
        _ if is(TypeId::of::<bool>()) => Form::Bool,
        _ if is(TypeId::of::<Setting>()) => Form::Number,
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
    // The parser of the option, without the rules that concern other options.
    let value = Arg::new("value").long("value");
    let value = value.value_parser(arg.get_value_parser().clone());
    let alone = Command::new("file").no_binary_name(true).arg(value);
    let read = alone.try_get_matches_from([format!("--value={text}")]);
    let read = read.map_err(|error| match error.source() {
        Some(what) => what.to_string(),
        None => error.kind().to_string(),
    })?;
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
