//! `acp-relay connect`: speaks stdio to the editor that started it, and forwards it to an agent.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use tokio::runtime::Builder;

use super::admin::{Admin, AdminAddress, PendingMetrics};
use super::agent_connect::ConnectPermission;
use super::common::{Common, RelayContext};
use super::conversation::{self, NoAgent, reject_quickly, run_conversation};
use super::login::LoginArgs;
use super::policy::PolicyArgs;
use super::ssh_install::SshInstallArgs;
use super::target::{self, AgentArgument, Target};
use super::{admission, console, endpoints, exit, joined, remote, runtime, shutdown, stderr};
use auth::ONLY_AGENT;
use observe::Observers;
use observe::metrics::Transport;
use policy::MessagePolicy;
use proxy::StopSignals;
use transport::registry;
use transport::{Endpoint, Link, PeerKind, Workers};

/// Arguments of `connect`.
#[derive(Debug, Args)]
pub(super) struct Connect {
    /// The agent: where it listens, or a name: of an agent in the configuration file, of one that
    /// was joined, or of a well-known one
    ///
    /// An editor's entry without an agent gets the configuration file's `default-agent`.
    #[arg(value_name = "AGENT", conflicts_with = "command", value_parser = target::read)]
    pub(super) agent: Option<AgentArgument>,
    /// Read a line of `token new NAME --link URL` from stdin, and keep its address and token; then
    /// `connect NAME` reaches that agent. AGENT is the name to keep it under
    #[arg(long, conflicts_with = "command")]
    pub(super) join: bool,
    #[command(flatten)]
    pub(super) permission: ConnectPermission,
    /// Serve monitoring here, as `serve --admin` does; 127.0.0.1:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub(super) admin: Option<AdminAddress>,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
    #[command(flatten)]
    pub(super) ssh: SshInstallArgs,
    #[command(flatten)]
    pub(super) login: LoginArgs,
    #[command(flatten)]
    pub(super) common: Common,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>)]
    pub(super) command: Vec<OsString>,
}

/// An agent, with all that a conversation with it needs.
pub(super) struct Prepared {
    pub(super) target: Target,
    pub(super) context: RelayContext,
    /// Its listener has proved that it is a relay of this user on this machine.
    is_proven: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: Connect) -> Result<ExitCode, ExitCode> {
    if args.join {
        return match args.agent {
            Some(AgentArgument::Endpoint(_)) => Err(exit::fail(exit::USAGE, &joined::NEEDS_NAME)),
            Some(AgentArgument::Name(name)) => joined::join(Some(&name)),
            None => joined::join(None),
        };
    }
    // One conversation: a second thread would only cost wake-ups.
    let connected = async { connect(args).await.unwrap_or_else(|code| code) };
    Ok(runtime::drive(Builder::new_current_thread(), connected))
}

/// Carries the conversation. Errors are printed, and the exit code is returned.
async fn connect(args: Connect) -> Result<ExitCode, ExitCode> {
    if args.agent.is_none() && args.command.is_empty() {
        target::check_record(args.common.record_folder())?;
    }
    let target = target::find(args.agent, args.command, "connect ENDPOINT")?;
    let stop = StopSignals::default();
    shutdown::watch(stop.clone(), None)?;
    let mut prepared = Prepared::new(target, args.common, stop).await?;
    prepared.context.agent.ssh_install = args.ssh.install(false);
    if args.permission != ConnectPermission::default() {
        if !prepared.target.endpoint.is_agent_connect() {
            let fault =
                "--default-permission is for agents behind Agent Connect (agent-connect+http://)";
            return Err(exit::fail(exit::USAGE, &fault));
        }
        args.permission.apply(&mut prepared.context.agent);
    }
    let Prepared {
        target, context, ..
    } = &prepared;
    let _sweeper = context.sweep();
    if let Some(recorders) = &context.recorders {
        recorders.announce(true);
    }
    let stop = &context.stop;
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
        admin.watch_links(context.agent.links.as_ref());
    }
    let metrics = admin.as_ref().map(|admin| {
        let metrics = admin.metrics();
        PendingMetrics::new(metrics, Transport::Stdio, ONLY_AGENT, &target.endpoint)
    });
    if console::input_is_terminal() {
        stderr::print(
            "acp-relay: waiting for an editor's messages on stdin; `acp-relay try` in place of \
             `connect` talks to the agent here",
        );
    }
    let reached = prepared.reach().await;
    let client = registry::connect(&Endpoint::Stdio, &context.client).await;
    let client = client.map_err(|error| exit::open_failed(&error))?;
    match reached {
        Ok(mut link) => {
            prepared.log_in(args.login, args.policy.guards_always(), &mut link);
            let policy = prepared.policy(args.policy, &link);
            let observers = Observers::default();
            let run = run_conversation(client, link, policy, context, metrics, observers);
            let end = run.await;
            if let Some(traces) = &context.traces {
                traces.finish();
            }
            let (stop, strict) = (&context.stop, context.is_strict());
            Ok(exit::of_end(&end, stop, strict, Some(&target.endpoint)))
        }
        Err(why) => {
            if let Some(metrics) = metrics {
                metrics.fail();
            }
            let code = exit::fail(why.code(), &why);
            reject_quickly(client, &why.reason(true), &context.limits, stop).await;
            Ok(code)
        }
    }
}

impl Prepared {
    /// Prepares conversations with `target` until `stop`. Errors are printed, and the exit code is
    /// returned.
    pub(super) async fn new(
        target: Target,
        common: Common,
        stop: StopSignals,
    ) -> Result<Self, ExitCode> {
        let usage = |fault: String| exit::fail(exit::USAGE, &fault);
        common.check_agent(&target.endpoint).map_err(usage)?;
        if common.remote.is_some() && target.part.is_some() {
            let fault = "options of remote agents are for an agent given by its endpoint; one \
                         given by name has its own";
            return Err(usage(fault.to_owned()));
        }
        let common = common.or_tables(target.tables.clone());
        let traces = common.start_traces()?;
        let mut context = common.context_with(stop, traces)?;
        context.label = endpoints::label(&target.endpoint);
        if let Some(part) = &target.part {
            let framing = context.agent.framing;
            context = context.of_agent(part).map_err(usage)?;
            context.agent.framing = framing.or(context.agent.framing);
        }
        remote::warn_in_clear(&target.endpoint, &context.agent);
        context.agent.serves_parent = true;
        let stop = context.stop.requested.clone();
        let verified = admission::verify_local(&target.endpoint, &mut context.agent);
        let is_proven = stop.run_until_cancelled(verified).await == Some(true);
        Ok(Self {
            target,
            context,
            is_proven,
        })
    }

    /// Opens the link to the agent.
    pub(super) async fn reach(&self) -> Result<Link, NoAgent> {
        let (to, setup) = (&self.target.endpoint, &self.context.agent);
        if self.target.install.is_some() {
            let available =
                endpoints::check_agent_available(to, setup, self.target.install.as_deref());
            available.map_err(NoAgent::Unreachable)?;
        }
        // The tables are read while the agent starts: it takes a third of the time until the first
        // message.
        let (reached, ()) = tokio::join!(
            conversation::connect_agent(to, setup, self.context.restarts, &self.context.stop),
            async { self.context.dialects.prepare() },
        );
        reached
    }

    /// Sets what is done for logins of an agent on another machine.
    pub(super) fn log_in(&self, login: LoginArgs, is_guarded: bool, link: &mut Link) {
        let agent = &self.target.endpoint;
        if link.guard.is_relay() && !self.is_own(link) {
            link.login = login.end(agent, is_guarded);
        }
    }

    /// What may pass between this machine and the agent at the other end of `link`.
    pub(super) fn policy(&self, args: PolicyArgs, link: &Link) -> Option<Box<MessagePolicy>> {
        args.build(&self.target.endpoint, self.is_own(link))
    }

    /// Whether the agent's relay is one of this user on this machine.
    fn is_own(&self, link: &Link) -> bool {
        self.is_proven || link.peer.kind == PeerKind::SameUser
    }
}
