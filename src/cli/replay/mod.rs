//! `acp-relay replay …` and `acp-relay bisect`: replays recordings.
//!
//! [`mod@agent`] answers a client from a recording; [`mod@client`] sends a recorded client's
//! requests to a live agent and reports differences; [`mod@bisect`] finds the first turn that
//! differs. `recording::replay` decides what is sent when.

mod agent;
mod bisect;
mod client;
mod play;
mod report;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(super) use self::bisect::{Bisect, EXAMPLES as BISECT, run as bisect};

/// The arguments of `replay`.
#[derive(Debug, Args)]
pub(super) struct Replay {
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
pub(super) fn run(args: Replay) -> ExitCode {
    match args.command {
        Command::Agent(args) => agent::run(*args),
        Command::Client(args) => client::run(&args),
    }
}
