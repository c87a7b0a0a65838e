//! `acp-relay agents list`: the well-known agents, and which of them are installed.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::import::{self, Import};
use super::profile::{Profile, all, imported};
use crate::cli::probe::{self, Answer};
use crate::cli::{console, exit};
use transport::process::find_program;

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
        /// Start each installed agent that is not imported, and report whether it answers
        /// `initialize`
        #[arg(long)]
        probe: bool,
    },
    /// Add the agents of a file in the format of the ACP registry to those that are known by name
    Import(Import),
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &AgentsArgs) -> Result<ExitCode, ExitCode> {
    let (json, probe) = match &args.command {
        Command::List { json, probe } => (*json, *probe),
        Command::Import(args) => return import::run(args),
    };
    let every = || all().iter().chain(imported());
    let answers = probe.then(probe_installed).transpose()?.unwrap_or_default();
    let answer = |profile: &Profile| answers.get(profile.name.as_str());
    if json {
        let every = every().map(|profile| as_json(profile, answer(profile)));
        return Ok(console::print_json(&every.collect(), exit::SUCCESS));
    }
    let widest = |text: fn(&Profile) -> usize| every().map(text).max().unwrap_or(0);
    let name = widest(|profile| profile.name.len());
    let command = widest(|profile| profile.command.join(" ").len());
    let lines = every().map(|profile| {
        let Profile {
            name: own, install, ..
        } = profile;
        let words = profile.command.join(" ");
        let state = match answer(profile) {
            Some(Ok(who)) => format!("installed, answers: {who}"),
            Some(Err(why)) => format!("installed, does not answer: {why}"),
            None if profile.command.is_empty() => {
                format!("command not known; to install: {install}")
            }
            None if is_installed(profile) => "installed".to_owned(),
            None => format!("not installed: {install}"),
        };
        format!("{own:name$}  {words:command$}  {state}\n")
    });
    Ok(console::print(&lines.collect::<String>(), exit::SUCCESS))
}

fn is_installed(profile: &Profile) -> bool {
    find_program(&profile.program().argv, &Default::default()).is_ok()
}

/// The names of those that are installed, without imported ones: a file has chosen their commands,
/// and they are started only by their names.
pub(in crate::cli) fn installed_names() -> Vec<&'static str> {
    let names = all().iter().filter(|profile| is_installed(profile));
    names.map(|profile| profile.name.as_str()).collect()
}

/// Asks the installed ones; the answers are by name.
fn probe_installed() -> Result<HashMap<&'static str, Answer>, ExitCode> {
    let names = installed_names();
    let asked = names.iter().map(|name| vec![(*name).into()]);
    let answers = probe::all(asked.collect())?;
    Ok(names.into_iter().zip(answers).collect())
}

fn as_json(profile: &Profile, answer: Option<&Answer>) -> Value {
    let mut value = json!(profile);
    value["installed"] = json!(is_installed(profile));
    match answer {
        Some(Ok(who)) => value["answers"] = json!(who),
        Some(Err(why)) => value["error"] = json!(why),
        None => {}
    }
    value
}
