//! `acp-relay config`: checks a file, prints an example, and shows the effective configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Subcommand};

use super::read::judge;
use super::source::{Sources, lines};
use super::{Config, Look, Place, read, show};
use crate::cli::cli::Serve;
use crate::cli::console::{self, counted};
use crate::cli::telemetry::LogArgs;
use crate::cli::{cli, exit, serve};

/// A file with all options, and comments.
const EXAMPLE: &str = include_str!("../../assets/acp-relay.toml");

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report all faults of a configuration file, each with its line; exit code 78 if there are any
    ///
    /// The programs, certificates, tokens and folders that it names must exist, too.
    Check {
        /// The file; without it, the one that `serve` would read
        #[arg(value_name = "FILE", env = "ACP_RELAY_CONFIG")]
        file: Option<PathBuf>,
        /// The file is for another machine: do not check programs, certificates, tokens and folders
        /// on this one
        #[arg(long)]
        elsewhere: bool,
    },
    /// Show the effective configuration of `serve` with the file, the environment and these
    /// options, each value with its source, and without secrets
    Show(Box<Serve>),
    /// Print a configuration file with all options, explained
    Example,
}

/// Runs the subcommand. `matches` is the parsed command line, `known` its definition, and `log` has
/// the log options of the command line.
pub(in crate::cli) fn run(
    args: &ConfigArgs,
    said: &ArgMatches,
    known: &clap::Command,
    log: &LogArgs,
) -> ExitCode {
    match &args.command {
        Command::Check { file, elsewhere } => {
            let look = if *elsewhere { Look::Whole } else { Look::Here };
            check(file.clone().map(Place), look)
        }
        Command::Show(serve) => in_force(serve, said, known, log),
        Command::Example => console::print(EXAMPLE, exit::SUCCESS),
    }
}

fn check(named: Option<Place>, look: Look) -> ExitCode {
    let Some(place) = named.or_else(Place::find) else {
        let usual = Place::usual().into_iter();
        let usual: Vec<String> = usual.map(|place| place.0.display().to_string()).collect();
        let fault = format!("there is no configuration file at {}", usual.join(" or "));
        return cli::fail(exit::NO_INPUT, &fault);
    };
    let text = match place.text() {
        Ok(text) => text,
        Err((code, fault)) => return cli::fail(code, &fault),
    };
    let (config, found) = judge(&place, &text, look);
    if !found.is_empty() {
        console::remark(&found.to_string());
    }
    if !found.is_sound() {
        return ExitCode::from(exit::CONFIG);
    }
    if let Err(fault) = place.check_owner() {
        return cli::fail(exit::FORBIDDEN, &fault);
    }
    let agents = counted(config.agents.len(), "agent");
    let listeners = counted(config.listeners.len(), "listener");
    let text = format!("{}: no faults; {agents}, {listeners}", place.0.display());
    console::print(&text, exit::SUCCESS)
}

fn in_force(args: &Serve, said: &ArgMatches, known: &clap::Command, log: &LogArgs) -> ExitCode {
    let (mut said, mut known) = (said, known);
    for name in ["config", "show"] {
        said = said.subcommand_matches(name).expect("it was asked for");
        known = known.find_subcommand(name).expect("it was asked for");
    }
    let place = serve::place(args);
    let (file, text) = match &place {
        None => (Config::default(), String::new()),
        Some(place) => {
            let text = match place.text() {
                Ok(text) => text,
                Err((code, fault)) => return cli::fail(code, &fault),
            };
            match read(place, &text, Look::Words) {
                Ok(file) => (file, text),
                Err(faults) => {
                    console::remark(&faults.to_string());
                    return ExitCode::from(exit::CONFIG);
                }
            }
        }
    };
    let sources = Sources {
        said,
        command: known,
        lines: lines(&text),
    };
    let heading = match &place {
        Some(place) => format!("# Line numbers refer to {}.", place.0.display()),
        None => "# There is no configuration file.".to_owned(),
    };
    match show::show(args, &file, log, &sources) {
        Ok(page) => console::print(&format!("{heading}\n\n{page}"), exit::SUCCESS),
        Err(fault) => cli::fail(exit::USAGE, &fault),
    }
}
