//! What `-h` prints of the subcommands with the most options, `serve`, `connect` and `try`: the
//! options of daily use on one or two screens. `--help` prints everything.

use clap::Command;

use super::{examples, try_agent};

/// The options, by their ids, that `-h` keeps.
const SERVE: [&str; 10] = [
    "config",
    "listen",
    "agent",
    "profile",
    "listeners.tls-cert",
    "listeners.tls-key",
    "on-disconnect",
    "admin.listen",
    "agent-dialect",
    "record.dir",
];
const CONNECT: [&str; 7] = [
    "join",
    "files",
    "guard",
    "map",
    "agent-dialect",
    "record.dir",
    "agents.bearer-file",
];
const TRY: [&str; 6] = [
    "cwd",
    "permission",
    "json",
    "agent-dialect",
    "record.dir",
    "agents.bearer-file",
];

/// The last lines of `-h`.
const MORE: &str = "Endpoints: `acp-relay help reference` lists them. `--help` shows all options.";

/// Hides from `-h` what these subcommands rarely need.
pub(super) fn shorten(command: Command) -> Command {
    command.mut_subcommands(|subcommand| match subcommand.get_name() {
        "serve" => keep(subcommand, &SERVE, examples::SERVE),
        "connect" => keep(subcommand, &CONNECT, examples::CONNECT),
        "try" => keep(subcommand, &TRY, try_agent::EXAMPLES),
        _ => subcommand,
    })
}

fn keep(subcommand: Command, kept: &[&str], examples: &str) -> Command {
    let subcommand = subcommand.mut_args(|arg| {
        let is_kept = arg.is_positional() || kept.contains(&arg.get_id().as_str());
        arg.hide_short_help(!is_kept)
    });
    let long = subcommand.get_after_help().cloned().unwrap_or_default();
    subcommand
        .after_help(format!("{}\n\n{MORE}", commands(examples)))
        .after_long_help(long)
}

/// The heading of examples and their commands, without the explanations below these.
fn commands(examples: &str) -> String {
    let examples = examples.split("\n\n").next().unwrap_or_default();
    let lines = examples.lines().filter(|line| !line.starts_with("      "));
    lines.collect::<Vec<_>>().join("\n")
}
