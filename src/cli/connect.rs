//! `acp-relay connect`: speaks stdio to the editor that started it, and forwards it to an agent.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use tokio::runtime::Builder;

use super::admin::{Admin, AdminAddress, PendingMetrics};
use super::common::Common;
use super::conversation::{self, reject_quickly, run_conversation};
use super::policy::PolicyArgs;
use super::{admission, agent_connect, endpoints, exit, remote, runtime};
use crate::agent_connect::api::interrupt::Permissions;
use crate::auth::ONLY_AGENT;
use crate::observe::metrics::Transport;
use crate::transport::registry;
use crate::transport::{Endpoint, PeerKind, Workers};

/// Arguments of `connect`.
#[derive(Debug, Args)]
pub(super) struct Connect {
    /// Where the agent is
    #[arg(value_name = "ENDPOINT", conflicts_with = "command", value_parser = endpoints::read_agent)]
    pub(super) endpoint: Option<Endpoint>,
    /// What to answer a permission request of an agent behind Agent Connect when the client does
    /// not answer [default: reject]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) default_permission: Option<Permissions>,
    /// Serve monitoring here, as `serve --admin` does; 127.0.0.1:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub(super) admin: Option<AdminAddress>,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
    #[command(flatten)]
    pub(super) common: Common,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>)]
    pub(super) command: Vec<OsString>,
}

/// Runs the subcommand.
pub(super) fn run(args: Connect) -> ExitCode {
    // One conversation: a second thread would only cost wake-ups.
    runtime::drive(Builder::new_current_thread(), async {
        connect(args).await.unwrap_or_else(|code| code)
    })
}

/// Carries the conversation. Errors are printed, and the exit code is returned.
async fn connect(args: Connect) -> Result<ExitCode, ExitCode> {
    let usage = |fault: String| exit::fail(exit::USAGE, &fault);
    let mut context = args.common.context()?;
    let agent = endpoints::agent(args.endpoint, args.command, "connect ENDPOINT");
    let agent = agent.map_err(usage)?;
    args.common.check_agent(&agent).map_err(usage)?;
    remote::warn_in_clear(&agent, &context.agent);
    if let Some(default_permission) = args.default_permission {
        if !agent_connect::is_own(&agent) {
            let fault =
                "--default-permission is for agents behind Agent Connect (agent-connect+http://)";
            return Err(usage(fault.to_owned()));
        }
        agent_connect::apply_default_permission(default_permission, &mut context.agent);
    }
    let _sweeper = context.sweep();
    if let Some(recorders) = &context.recorders {
        recorders.announce(true);
    }
    let stop = &context.stop;
    let verified = admission::verify_local(&agent, &mut context.agent);
    let is_proven = stop.requested.run_until_cancelled(verified).await == Some(true);
    let admin = Admin::start(
        args.admin.as_ref(),
        stop.requested.clone(),
        context
            .recorders
            .as_ref()
            .map(|recorders| recorders.folder()),
        Workers::default(),
        context.traces.as_ref(),
    );
    let admin = admin.await?;
    if let Some(admin) = &admin {
        // `connect` has no other listeners.
        admin.ready(Vec::new());
    }
    let metrics = admin
        .as_ref()
        .map(|admin| PendingMetrics::new(admin.metrics(), Transport::Stdio, ONLY_AGENT, &agent));
    // The tables are read while the agent starts: it takes a third of the time until the first
    // message.
    let (reached, ()) = tokio::join!(
        conversation::connect_agent(&agent, &context.agent, stop),
        async { context.dialects.prepare() },
    );
    let client = registry::connect(&Endpoint::Stdio, &context.client).await;
    let client = client.map_err(|error| exit::open_failed(&error))?;
    match reached {
        Ok(link) => {
            let is_own = is_proven || link.peer.kind == PeerKind::SameUser;
            let policy = args.policy.build(&agent, is_own);
            let end = run_conversation(client, link, policy, &context, metrics).await;
            if let Some(traces) = &context.traces {
                traces.finish();
            }
            Ok(exit::of_end(&end, &context.stop, context.is_strict()))
        }
        Err(why) => {
            if let Some(metrics) = metrics {
                metrics.fail();
            }
            let code = exit::fail(why.code(), &why);
            reject_quickly(client, &why.reason(), &context.limits, stop).await;
            Ok(code)
        }
    }
}
