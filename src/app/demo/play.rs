//! Plays one part of the demo.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{agent, client};
use crate::app::{cli, exit};

/// What `demo` is asked for.
#[derive(Debug, Args)]
pub(in crate::app) struct Demo {
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
pub(in crate::app) fn run(args: &Demo) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return cli::fail(exit::SYSTEM, &format!("cannot start the runtime: {error}"));
        }
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
        Err(error) => cli::fail(
            exit::UNAVAILABLE,
            &format!("the demo came to nothing: {error}"),
        ),
    }
}
