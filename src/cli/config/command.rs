//! `acp-relay config`: checks a file, prints an example, and shows the effective configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Subcommand};

use super::merge::CommandLine;
use super::read::read_with_notes;
use super::{CheckLevel, Config, ConfigFile, describe, read, show};
use crate::cli::console;
use crate::cli::serve::Serve;
use crate::cli::{exit, serve};
use analysis::text::counted;

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
        other_machine: bool,
    },
    /// Show the effective configuration of `serve` with the file, the environment and these
    /// options, each value with its source, and without secrets
    Show(Box<Serve>),
    /// Print a configuration file with all options, explained
    Example,
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
}

/// Runs the subcommand. `matches` is the parsed command line, and `known` its definition.
pub(in crate::cli) fn run(
    args: &ConfigArgs,
    matches: &ArgMatches,
    known: &clap::Command,
) -> ExitCode {
    let done = match &args.command {
        Command::Check {
            file,
            other_machine,
        } => {
            let level = match other_machine {
                true => CheckLevel::Complete,
                false => CheckLevel::Machine,
            };
            check(file.clone().map(ConfigFile), level)
        }
        Command::Show(serve) => {
            let line = CommandLine::of(known, matches, &["config", "show"]);
            show_effective(serve, &line)
        }
        Command::Example => Ok(console::print(&describe::example(), exit::SUCCESS)),
        Command::Schema => Ok(console::print_json(&describe::schema(), exit::SUCCESS)),
    };
    done.unwrap_or_else(|code| code)
}

fn check(named: Option<ConfigFile>, level: CheckLevel) -> Result<ExitCode, ExitCode> {
    let Some(place) = named.or_else(ConfigFile::find) else {
        let usual = ConfigFile::default_paths().into_iter();
        let usual: Vec<String> = usual.map(|place| place.0.display().to_string()).collect();
        let fault = format!("there is no configuration file at {}", usual.join(" or "));
        return Err(exit::fail(exit::NO_INPUT, &fault));
    };
    let text = place.text()?;
    let (config, found) = read_with_notes(&place, &text, level);
    if !found.is_empty() {
        console::note(&found.report());
    }
    if !found.has_only_notes() {
        return Err(ExitCode::from(exit::CONFIG));
    }
    place.check_owner()?;
    let agents = counted(config.agents.len(), "agent");
    let listeners = counted(config.listeners.len(), "listener");
    let text = format!("{}: no faults; {agents}, {listeners}", place.0.display());
    Ok(console::print(&text, exit::SUCCESS))
}

fn show_effective(args: &Serve, line: &CommandLine) -> Result<ExitCode, ExitCode> {
    let mut file = Config::default();
    let mut heading = "# There is no configuration file.".to_owned();
    if let Some(place) = serve::config_file(args) {
        let read = read(&place, &place.text()?, CheckLevel::Values);
        file = read.map_err(|faults| {
            console::note(&faults.report());
            ExitCode::from(exit::CONFIG)
        })?;
        heading = format!("# Line numbers refer to {}.", place.0.display());
    }
    let report = show::show(line, &file);
    let report = report.map_err(|fault| exit::fail(exit::USAGE, &fault))?;
    let text = format!("{heading}\n\n{report}");
    Ok(console::print(&text, exit::SUCCESS))
}
