//! The tables of the file and their keys. The reader, `config show`, the example and the JSON
//! Schema are made from them.
//!
//! An option is declared once, as a field of a `clap::Args` struct: its meaning, flag, variable,
//! form, values and default. The field's id is the path of its key in the file, such as
//! `record.max-age`. A key that is no flag is a field of a struct that no subcommand has. Limits
//! are declared in `jsonrpc::limits`, and become options here.

use std::sync::LazyLock;

use clap::{Arg, ArgAction, Command};

use super::model::{AgentPart, ListenerPart};
use super::option::{command, path};
use crate::cli::admin::AdminArgs;
use crate::cli::admission::AdmissionArgs;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::dialect::Tables;
use crate::cli::limits::Setting;
use crate::cli::link_options::LinkArgs;
use crate::cli::record::RecordArgs;
use crate::cli::serve::DisconnectArgs;
use crate::cli::telemetry::LogArgs;
use crate::cli::traces::TracesArgs;
use jsonrpc::Limits;
use jsonrpc::limits::{LIMITS, Limit};

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

/// All tables.
pub(super) static TABLES: &[Table] = &[
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
    #[cfg(feature = "agent-connect")]
    table(
        "agent-connect",
        "[agent-connect]",
        "Listeners for AGNTCY's Agent Connect, agent-connect+http:// and agent-connect+https://",
    ),
    #[cfg(feature = "cluster")]
    table("cluster", "[cluster]", "Many machines, which meet on NATS"),
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
static DECLARED: LazyLock<Command> = LazyLock::new(|| {
    let parts = [
        command::<DisconnectArgs>(),
        command::<LinkArgs>(),
        command::<AdmissionArgs>(),
        command::<RecordArgs>(),
        command::<AdminArgs>(),
        command::<AgentConnectArgs>(),
        #[cfg(feature = "cluster")]
        command::<crate::cli::cluster::ClusterArgs>(),
        command::<Tables>(),
        command::<TracesArgs>(),
        command::<LogArgs>(),
        command::<AgentPart>(),
        command::<ListenerPart>(),
    ];
    let options = parts.iter().flat_map(Command::get_arguments).cloned();
    let usual = Arg::new("default-agent").value_name("AGENT");
    let usual = usual
        .help("The agent of clients that name none; if there is only one agent, it is that one");
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
        .arg(usual)
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

/// Whether two options, by their ids, exclude each other.
pub(super) fn contradict(one: &str, other: &str) -> bool {
    let forbids = |one: &str, other: &str| {
        let own = DECLARED.get_arguments().filter(|arg| arg.get_id() == one);
        let mut others = own.flat_map(|own| DECLARED.get_arg_conflicts_with(own));
        others.any(|found| found.get_id() == other)
    };
    forbids(one, other) || forbids(other, one)
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
    let usual = limit.text(limit.get(&Limits::default()));
    let read = move |text: &str| limit.read(text).map(|value| Setting { limit, value });
    let arg = Arg::new(id).help(limit.about).default_value(usual);
    arg.value_parser(read)
}
