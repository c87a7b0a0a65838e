//! `acp-relay agents list`: the well-known agents, and which of them are installed.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::import::{self, Import};
use super::profile::{Profile, all, imported};
use crate::cli::{console, exit};
use crate::transport::process::find_program;

/// Arguments of `agents`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AgentsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the well-known agents: their commands, and whether they are installed
    List {
        /// Print one JSON array, for a program
        #[arg(long)]
        json: bool,
    },
    /// Add the agents of a file in the format of the ACP registry to those that are known by name
    Import(Import),
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &AgentsArgs) -> ExitCode {
    let json = match &args.command {
        Command::List { json } => *json,
        Command::Import(args) => return import::run(args),
    };
    let every = || all().iter().chain(imported());
    if json {
        let every: Vec<Value> = every().map(as_json).collect();
        return console::print_json(&Value::from(every), exit::SUCCESS);
    }
    let widest = |text: fn(&Profile) -> usize| every().map(text).max().unwrap_or(0);
    let name = widest(|profile| profile.name.len());
    let command = widest(|profile| profile.command.join(" ").len());
    let lines = every().map(|profile| {
        let Profile {
            name: own, install, ..
        } = profile;
        let words = profile.command.join(" ");
        let state = match () {
            () if profile.command.is_empty() => format!("command not known; to install: {install}"),
            () if is_installed(profile) => "installed".to_owned(),
            () => format!("not installed: {install}"),
        };
        format!("{own:name$}  {words:command$}  {state}\n")
    });
    console::print(&lines.collect::<String>(), exit::SUCCESS)
}

fn is_installed(profile: &Profile) -> bool {
    find_program(&profile.program().argv, &Default::default()).is_ok()
}

fn as_json(profile: &Profile) -> Value {
    let mut value = json!(profile);
    value["installed"] = json!(is_installed(profile));
    value
}
