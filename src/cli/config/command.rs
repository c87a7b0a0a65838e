//! `acp-relay config`: what is wrong with a file, what one looks like, and what is in force.
//!
//! Not here: reading it (see `read`).

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

/// A file that says all there is to say, with comments.
const EXAMPLE: &str = include_str!("example.toml");

/// What `config` is asked for.
#[derive(Debug, Args)]
pub(in crate::cli) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say all that is wrong with a configuration file, each with its line; exit code 78 if anything
    /// is
    ///
    /// Programs, certificates, tokens and folders have to be there, too.
    Check {
        /// The file; without it, the one that `serve` would read
        #[arg(value_name = "FILE", env = "ACP_RELAY_CONFIG")]
        file: Option<PathBuf>,
        /// The file is for another machine: do not look for programs, certificates, tokens and
        /// folders on this one
        #[arg(long)]
        elsewhere: bool,
    },
    /// Show what `serve` would do with the file, the environment and these options, each with where
    /// it comes from, and without secrets
    Show(Box<Serve>),
    /// Print a configuration file that has everything in it, explained
    Example,
}

/// Runs the subcommand. `said` is the command line, `known` what may stand on it, and `log` what it
/// says of the log.
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
        Some(place) => format!("# Lines are those of {}.", place.0.display()),
        None => "# There is no configuration file.".to_owned(),
    };
    match show::show(args, &file, log, &sources) {
        Ok(page) => console::print(&format!("{heading}\n\n{page}"), exit::SUCCESS),
        Err(fault) => cli::fail(exit::USAGE, &fault),
    }
}
