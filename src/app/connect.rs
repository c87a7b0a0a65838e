//! `acp-relay connect`: speaks stdio to the editor that started it, and carries it to an agent.

use std::process::ExitCode;

use tokio::runtime::Builder;

use super::cli::{self, Connect};
use super::conversation::{self, carry, turn_away_briskly};
use super::{endpoints, exit, runtime, shutdown};
use crate::relay::Stop;
use crate::transport::registry;
use crate::transport::{Endpoint, OpenError, Setup};

/// Runs the subcommand.
pub(super) fn run(args: Connect) -> ExitCode {
    // One conversation: a second thread could only cost wake-ups.
    runtime::drive(Builder::new_current_thread(), async {
        match connect(args).await {
            Ok(code) => code,
            Err(error) => cli::fail(exit::of_open_error(&error), &error),
        }
    })
}

async fn connect(mut args: Connect) -> Result<ExitCode, OpenError> {
    let stop = Stop::default();
    if let Err(error) = shutdown::watch(stop.clone()) {
        return Ok(cli::fail(
            exit::SYSTEM,
            &format!("cannot listen for signals: {error}"),
        ));
    }
    let limits = args.common.limits();
    let tongues = match args.common.take_tongues() {
        Ok(tongues) => tongues,
        Err(code) => return Ok(code),
    };
    let setup = args.common.agent_setup(&limits, &tongues);
    let ours = Setup {
        framing: args
            .client_framing
            .fixed()
            .or_else(|| tongues.client_framing()),
        ..setup.clone()
    };
    let agent = match endpoints::agent(args.endpoint, args.command, "connect ENDPOINT") {
        Ok(agent) => agent,
        Err(fault) => return Ok(cli::fail(exit::USAGE, &fault)),
    };
    if let Err(fault) = endpoints::check_ca(&agent, &setup.tls) {
        return Ok(cli::fail(exit::USAGE, &fault));
    }
    let reached = conversation::reach(&agent, &setup, &stop).await;
    let client = registry::connect(&Endpoint::Stdio, &ours).await?;
    match reached {
        Ok(agent) => {
            let end = carry(client, agent, &limits, tongues.speech(), &stop).await;
            Ok(exit::of_end(&end, &stop))
        }
        Err(why) => {
            let code = cli::fail(why.code(), &why);
            turn_away_briskly(client, &why.reason(), &limits, &stop).await;
            Ok(code)
        }
    }
}
