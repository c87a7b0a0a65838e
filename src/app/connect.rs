//! `acp-relay connect`: speaks stdio to the editor that started it, and carries it to an agent.

use std::process::ExitCode;
use std::sync::Arc;

use super::cli::{self, Connect};
use super::{exit, shutdown};
use crate::relay::{self, Stop};
use crate::tap::{Journal, Taps};
use crate::transport::registry;
use crate::transport::{Endpoint, OpenError, Setup};

/// Runs the subcommand.
pub(super) fn run(args: Connect) -> ExitCode {
    // One conversation: a second thread could only cost wake-ups.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return cli::fail(exit::SYSTEM, &format!("cannot start the runtime: {error}"));
        }
    };
    let code = runtime.block_on(async {
        match carry(args).await {
            Ok(code) => code,
            Err(error) => cli::fail(exit::of_open_error(&error), &error),
        }
    });
    // The thread that reads our stdin may be in the middle of a read that never returns.
    runtime.shutdown_background();
    code
}

async fn carry(args: Connect) -> Result<ExitCode, OpenError> {
    let stop = Stop::default();
    if let Err(error) = shutdown::watch(stop.clone()) {
        return Ok(cli::fail(
            exit::SYSTEM,
            &format!("cannot listen for signals: {error}"),
        ));
    }
    let limits = args.common.limits();
    let setup = args.common.agent_setup(&limits);
    let endpoint = args.endpoint.unwrap_or(Endpoint::Exec(args.command));
    let agent = tokio::select! {
        agent = registry::connect(&endpoint, &setup) => agent?,
        () = stop.asked.cancelled() => return Ok(ExitCode::from(exit::FORCED)),
    };
    let ours = Setup {
        framing: args.client_framing.fixed(),
        ..setup
    };
    let client = registry::connect(&Endpoint::Stdio, &ours).await?;
    tracing::info!(
        client = client.peer.name,
        agent = agent.peer.name,
        "connected"
    );
    let taps = Taps::default().with(Journal::default());
    let end = relay::run(client, agent, Arc::clone(&limits), taps, &stop).await;
    tracing::info!(cause = ?end.cause, "over");
    Ok(exit::of_end(&end))
}
