//! `acp-relay agents list`: the well-known agents, and which of them are installed.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::profile::{Profile, all};
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
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &AgentsArgs) -> ExitCode {
    let Command::List { json } = &args.command;
    if *json {
        let all: Vec<Value> = all().iter().map(as_json).collect();
        return console::print_json(&Value::from(all), exit::SUCCESS);
    }
    let widest = |text: fn(&Profile) -> usize| all().iter().map(text).max().unwrap_or(0);
    let name = widest(|profile| profile.name.len());
    let command = widest(|profile| profile.command.join(" ").len());
    let lines = all().iter().map(|profile| {
        let Profile {
            name: own, install, ..
        } = profile;
        let words = profile.command.join(" ");
        let state = match is_installed(profile) {
            true => "installed".to_owned(),
            false => format!("not installed: {install}"),
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
