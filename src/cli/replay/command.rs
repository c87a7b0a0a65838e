//! The command line of `acp-relay replay`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{agent, client};
use crate::cli::processes;

/// The arguments of `replay`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Replay {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play the recorded agent: answer the client on stdio as recorded
    #[command(after_help = agent::EXAMPLES)]
    Agent(Box<agent::Agent>),
    /// Play the recorded client: send its requests to a live agent, and report different answers
    #[command(after_help = client::EXAMPLES)]
    Client(Box<client::Client>),
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: Replay) -> Result<ExitCode, ExitCode> {
    match args.command {
        Command::Agent(args) => agent::run(*args),
        Command::Client(args) => processes::run_and_reap(|| client::run(&args)),
    }
}
