//! The command line of `acp-relay replay`.
//!
//! Not here: what a subcommand does (each has its own file).

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{agent, client};

/// What `replay` is asked for.
#[derive(Debug, Args)]
pub(in crate::cli) struct Replay {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Be the recorded agent: answer the client on stdio as it was answered
    #[command(after_help = agent::EXAMPLES)]
    Agent(Box<agent::Agent>),
    /// Be the recorded client: ask a live agent the same, and say what it answers otherwise
    #[command(after_help = client::EXAMPLES)]
    Client(Box<client::Client>),
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: Replay) -> ExitCode {
    match args.command {
        Command::Agent(args) => agent::run(*args),
        Command::Client(args) => client::run(&args),
    }
}
