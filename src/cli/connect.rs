//! `acp-relay connect`: speaks stdio to the editor that started it, and carries it to an agent.

use std::process::ExitCode;

use tokio::runtime::Builder;

use super::admin::{Account, Admin, Place};
use super::cli::{self, Connect};
use super::common::Ground;
use super::conversation::{self, carry, turn_away_briskly};
use super::{agent_connect, door, endpoints, exit, remote, runtime};
use crate::auth::ONLY_AGENT;
use crate::observe::metrics::Transport;
use crate::transport::registry;
use crate::transport::{Endpoint, OpenError, PeerKind, Workers};

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

async fn connect(args: Connect) -> Result<ExitCode, OpenError> {
    let mut ground = match args.common.lay() {
        Ok(ground) => ground,
        Err(code) => return Ok(code),
    };
    let agent = match endpoints::agent(args.endpoint, args.command, "connect ENDPOINT") {
        Ok(agent) => agent,
        Err(fault) => return Ok(cli::fail(exit::USAGE, &fault)),
    };
    let suits = args.common.check_agent(&agent);
    let fits = remote::check(&agent, &ground.agent);
    if let Err(fault) = fits.and(suits) {
        return Ok(cli::fail(exit::USAGE, &fault));
    }
    if let Some(unasked) = args.unasked {
        if !agent_connect::is_own(&agent) {
            let fault = "--unasked is for agents behind Agent Connect (agent-connect+http://)";
            return Ok(cli::fail(exit::USAGE, &fault));
        }
        ground.agent.agent_connect.unasked = unasked.rule();
    }
    let _sweeper = ground.sweep();
    if let Some(studio) = &ground.studio {
        studio.announce(true);
    }
    let stop = &ground.stop;
    let greeted = door::greet(&agent, &mut ground.agent);
    let is_proven = stop.asked.run_until_cancelled(greeted).await == Some(true);
    let admin = match open_admin(args.admin.as_ref(), &ground).await {
        Ok(admin) => admin,
        Err(code) => return Ok(code),
    };
    let account = admin
        .as_ref()
        .map(|admin| Account::new(admin.metrics(), Transport::Stdio, ONLY_AGENT, &agent));
    let reached = conversation::reach(&agent, &ground.agent, stop).await;
    let client = registry::connect(&Endpoint::Stdio, &ground.client).await?;
    match reached {
        Ok(link) => {
            let is_own = is_proven || link.peer.kind == PeerKind::SameUser;
            let border = args.border.raise(&agent, is_own);
            let end = carry(client, link, border, &ground, account).await;
            if let Some(traces) = &ground.traces {
                traces.finish();
            }
            Ok(exit::of_end(&end, &ground))
        }
        Err(why) => {
            if let Some(account) = account {
                account.fail();
            }
            let code = cli::fail(why.code(), &why);
            turn_away_briskly(client, &why.reason(), &ground.limits, stop).await;
            Ok(code)
        }
    }
}

/// Opens the admin listener, if it is wanted. What is wrong is said, and the exit code returned.
async fn open_admin(place: Option<&Place>, ground: &Ground) -> Result<Option<Admin>, ExitCode> {
    let Some(place) = place else {
        return Ok(None);
    };
    let recordings = ground.studio.as_ref().map(|studio| studio.folder());
    let admin = Admin::begin(place, ground.stop.asked.clone(), recordings).await?;
    admin.tell_of(Workers::default());
    if let Some(traces) = &ground.traces {
        admin.metrics().set_spans(traces.tally());
    }
    // There is nothing else to listen at.
    admin.ready(Vec::new());
    Ok(Some(admin))
}
