//! The command line of `acp-relay demo`.

use std::process::ExitCode;

use clap::Args;
use tokio::runtime::Builder;

use super::client;
use super::rpc::Failure;
use crate::cli::{exit, processes, runtime, shutdown};
use crate::proxy::StopSignals;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Demo {
    /// Refuse the agent's edit instead of allowing it
    #[arg(long)]
    deny: bool,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Demo) -> ExitCode {
    processes::run_and_reap(|| runtime::drive(Builder::new_current_thread(), run_client(args.deny)))
}

/// Runs the client until it is asked to stop; dropping the future removes everything it created.
async fn run_client(deny: bool) -> ExitCode {
    let stop = StopSignals::default();
    if let Err(code) = shutdown::watch(stop.clone(), None) {
        return code;
    }
    tokio::select! {
        end = client::play(deny) => outcome(end),
        () = stop.requested.cancelled() => exit::fail(exit::STOPPED, &"stopped before the demo was over"),
    }
}

fn outcome(end: Result<(), Failure>) -> ExitCode {
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<client::PrintError>() => exit::fail(exit::SYSTEM, &error),
        Err(error) => exit::fail(exit::UNAVAILABLE, &format!("the demo failed: {error}")),
    }
}
