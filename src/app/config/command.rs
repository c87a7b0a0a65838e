//! `acp-relay config`: what is wrong with a file, what one looks like, and what is in force.
//!
//! Not here: reading it (see `read`).

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{Place, read};
use crate::app::{cli, console, exit};

/// A file that says all there is to say, with comments.
const EXAMPLE: &str = include_str!("example.toml");

/// What `config` is asked for.
#[derive(Debug, Args)]
pub(in crate::app) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say all that is wrong with a configuration file, each with its line; exit code 78 if anything
    /// is
    Check {
        /// The file; without it, the one that `serve` would read
        #[arg(value_name = "FILE", env = "ACP_RELAY_CONFIG")]
        file: Option<PathBuf>,
    },
    /// Print a configuration file that has everything in it, explained
    Example,
}

/// Runs the subcommand.
pub(in crate::app) fn run(args: &ConfigArgs) -> ExitCode {
    match &args.command {
        Command::Check { file } => check(file.clone().map(Place)),
        Command::Example => console::print(EXAMPLE, exit::SUCCESS),
    }
}

fn check(named: Option<Place>) -> ExitCode {
    let Some(place) = named.or_else(Place::find) else {
        let usual = Place::usual().into_iter();
        let usual: Vec<String> = usual.map(|place| place.0.display().to_string()).collect();
        let fault = format!("there is no configuration file at {}", usual.join(" or "));
        return cli::fail(exit::NO_INPUT, &fault);
    };
    let text = match place.text() {
        Ok(text) => text,
        Err(fault) => return cli::fail(exit::NO_INPUT, &fault),
    };
    match read(&place, &text) {
        Ok(config) => {
            if let Err(fault) = place.check_owner() {
                return cli::fail(exit::FORBIDDEN, &fault);
            }
            let (agents, listeners) = (config.agents.len(), config.listeners.len());
            let path = place.0.display();
            let text = format!("{path}: no faults; {agents} agents, {listeners} listeners");
            console::print(&text, exit::SUCCESS)
        }
        Err(faults) => {
            console::remark(&faults.to_string());
            ExitCode::from(exit::CONFIG)
        }
    }
}
