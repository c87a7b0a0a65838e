//! `acp-relay demo`: the main job on embedded parts.
//!
//! A small agent runs behind `acp-relay serve`, a small client starts `acp-relay connect`, and one
//! whole turn passes through both relays over a WebSocket: real processes, the real message path.
//! Only the agent's mind is made up. Not here: anything the relay itself needs.

mod agent;
mod client;
mod talk;

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::cli;
use super::exit;

/// What `demo` is asked for.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Refuse the agent's edit instead of allowing it
    #[arg(long)]
    deny: bool,
    /// Which part to play; the others are started by it
    #[arg(long, value_enum, default_value_t, hide = true)]
    part: Part,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Part {
    #[default]
    Client,
    Agent,
}

/// Runs the subcommand.
pub(super) fn run(args: &Demo) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(exit::SYSTEM, &format!("cannot start the runtime: {error}")),
    };
    let outcome = runtime.block_on(async {
        match args.part {
            Part::Client => client::play(args.deny).await,
            Part::Agent => agent::play().await,
        }
    });
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => cli::fail(exit::UNAVAILABLE, &format!("the demo came to nothing: {error}")),
    }
}
