//! `acp-relay serve` from the command line to the exit code, and reloading on SIGHUP.

use std::future::{Future, pending};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc};

use super::Serve;
use super::agent_pool::ConnectionLimit;
use super::listening::OpenListeners;
#[cfg(feature = "cluster")]
use super::many;
#[cfg(not(feature = "cluster"))]
use super::part::Alone;
use super::part::Role;
use super::plan::{ActivePlan, plan};
use super::server::Server;
use super::systemd;
use crate::cli::admin::Admin;
use crate::cli::config::{self, CommandLine, Config, ConfigFile, Effective};
use crate::cli::record::RecorderFactory;
use crate::cli::telemetry;
use crate::cli::traces::Traces;
use crate::cli::{exit, runtime, shutdown, stderr};
use analysis::text::counted;
use observe::metrics::ReloadOutcome;
use observe::recorder::Pruner;
use proxy::StopSignals;
use transport::Inherited;

/// A running `serve`.
struct ServeLoop {
    line: CommandLine,
    /// The configuration file, if there is one, and its content at the start.
    place: Option<ConfigFile>,
    begun_with: Config,
    /// What was read last.
    file: Config,
    role: Role,
    stop: StopSignals,
    traces: Option<Traces>,
    admin: Option<Admin>,
    listening: OpenListeners,
    active: ActivePlan,
    /// Deletes old recordings.
    sweeper: Option<Pruner>,
}

/// The sockets passed by systemd. Errors are printed, and the exit code is returned.
pub(in crate::cli) fn sockets() -> Result<Inherited, ExitCode> {
    let passed = sd_listen_fds::get();
    let passed = passed.map_err(|error| {
        let fault = format!("{error}: LISTEN_PID and LISTEN_FDS are not set as systemd sets them");
        exit::fail(exit::USAGE, &fault)
    })?;
    let sockets = passed.into_iter().map(|(_, socket)| socket.into_std());
    Ok(Inherited::new(sockets.collect()))
}

/// Runs the subcommand. `line` is the command line, and `args` the options of `serve` alone.
pub(in crate::cli) fn run(args: &Serve, line: CommandLine, sockets: Inherited) -> ExitCode {
    let run = || {
        let place = config_file(args);
        let file = place
            .as_ref()
            .map_or_else(|| Ok(Config::default()), config::load)?;
        let effective = effective(&line, &file)?;
        telemetry::start(&effective.log).map_err(|error| exit::fail(exit::USAGE, &error))?;
        // Clients are served on separate worker threads.
        Ok(runtime::drive(Builder::new_current_thread(), async {
            let served = serve(line, &effective, place, file, sockets).await;
            served.unwrap_or_else(|code| code)
        }))
    };
    run().unwrap_or_else(|code: ExitCode| code)
}

/// The configuration file: the one given, or the default one if nothing to serve is given.
pub(in crate::cli) fn config_file(args: &Serve) -> Option<ConfigFile> {
    let named = args.config.clone().map(ConfigFile);
    let has_no_agent = args.listen.is_empty()
        && args.agent.is_none()
        && args.profile.is_none()
        && args.command.is_empty();
    named.or_else(|| ConfigFile::find().filter(|_| has_no_agent))
}

/// The command line over the file. Errors are printed, and the exit code is returned.
fn effective(line: &CommandLine, file: &Config) -> Result<Effective, ExitCode> {
    let effective = line.effective(file);
    effective.map_err(|error| exit::fail(exit::USAGE, &error))
}

async fn serve(
    line: CommandLine,
    effective: &Effective,
    place: Option<ConfigFile>,
    file: Config,
    sockets: Inherited,
) -> Result<ExitCode, ExitCode> {
    let args = &effective.args;
    let stop = StopSignals::default();
    let again = Arc::new(Notify::new());
    shutdown::watch(stop.clone(), place.as_ref().map(|_| Arc::clone(&again)))?;
    let traces = args.common.start_traces()?;
    let clients = ConnectionLimit::default();
    #[cfg(feature = "cluster")]
    let role: Role = Box::pin(many::start(args, line.is_of("gateway"), &clients)).await?;
    #[cfg(not(feature = "cluster"))]
    let role: Role = Arc::new(Alone);
    let (mut listeners, active) = plan(effective, (&stop, traces.as_ref(), &role), None)?;
    for (_, listener) in &mut listeners {
        listener.setup.inherited = sockets.clone();
    }
    let admin = Admin::start(
        args.admin.listen.as_ref(),
        stop.requested.clone(),
        active.recorders().map(RecorderFactory::folder),
        active.workers.clone(),
        traces.as_ref(),
    );
    let admin = admin.await?;
    let metrics = admin.as_ref().map(|admin| Arc::clone(admin.metrics()));
    let server = Arc::new(Server::new(stop.clone(), metrics, clients, role.clone()));
    let (report, mut last) = mpsc::channel(1);
    let exit_when_idle = args.exit_when_idle;
    let mut serve_loop = ServeLoop {
        listening: OpenListeners::new(Arc::clone(&server), report),
        active,
        line,
        place,
        begun_with: file.clone(),
        file,
        role,
        stop,
        traces,
        admin,
        sweeper: None,
    };
    serve_loop.attach_metrics(&serve_loop.active);
    serve_loop.active.admission.activate();
    let listening = tokio::select! {
        listening = serve_loop.listening.follow(listeners) => listening,
        () = server.stop.requested.cancelled() => {
            let fault = "stopped before any listener was open";
            return Err(exit::fail(exit::STOPPED, &fault));
        }
    };
    listening.map_err(|error| exit::open_failed(&error))?;
    if let Some(unused) = sockets.unused() {
        let fault =
            format!("systemd has passed a socket at {unused}, and no listener has that address");
        return Err(exit::fail(exit::CONFIG, &fault));
    }
    if let Some(recorders) = serve_loop.active.recorders() {
        recorders.announce(false);
    }
    serve_loop.update_admin();
    Arc::clone(&serve_loop.role).announce();
    serve_loop.sweeper = serve_loop.active.context.sweep();
    let idle = async {
        match exit_when_idle {
            Some(time) => server.idle_for(time).await,
            None => pending().await,
        }
    };
    serve_loop.run(&again, idle).await;
    server.conversations.close();
    server.conversations.wait().await;
    serve_loop.role.retire().await;
    if let Some(traces) = &serve_loop.traces {
        traces.finish();
    }
    drop(serve_loop);
    Ok(match last.recv().await {
        _ if server.stop.forced.is_cancelled() => ExitCode::from(exit::STOPPED),
        Some(code) => code,
        None => ExitCode::SUCCESS,
    })
}

impl ServeLoop {
    /// Serves until all listeners are closed, the program is asked to stop, or `idle` is over.
    async fn run(&mut self, again: &Notify, idle: impl Future<Output = ()>) {
        systemd::ready(&self.status());
        let stop = self.stop.requested.clone();
        let mut idle = pin!(idle);
        let role = Arc::clone(&self.role);
        loop {
            tokio::select! {
                () = &mut idle => {
                    stop.cancel();
                    break;
                }
                // Listeners close when a stop is requested, possibly before this loop sees it.
                () = self.listening.ended() => break,
                () = stop.cancelled() => break,
                () = again.notified() => self.reload().await,
                () = role.changed() => self.replan().await,
            }
        }
        systemd::stopping();
        self.role.drain();
        self.listening.ended().await;
        self.update_admin();
    }

    /// Connects the metrics, if they are collected, to the admission and the agents of a plan.
    fn attach_metrics(&self, plan: &ActivePlan) {
        let Some(admin) = &self.admin else {
            return;
        };
        let metrics = admin.metrics();
        admin.watch_links(plan.context.agent.links.as_ref());
        plan.admission.gate().set_events(Arc::clone(metrics) as _);
        for agent in &plan.agents.all {
            // Its series exist before its first client, so that a first failure is an increase.
            let _ = metrics.agent(agent.display_name());
            if let Some(store) = &agent.detached {
                store.set_metrics(metrics);
            }
        }
    }

    /// Reports the addresses of the listeners to the admin listener.
    fn update_admin(&self) {
        if let Some(admin) = &self.admin {
            admin.ready(self.listening.addresses());
        }
    }

    /// Reloads the configuration file, and reports the result.
    async fn reload(&mut self) {
        let Some(place) = self.place.clone() else {
            return;
        };
        systemd::reloading();
        let followed = self.follow(&place).await;
        if let Some(admin) = &self.admin {
            admin.metrics().config_reload(match &followed {
                Ok(_) => ReloadOutcome::Taken,
                Err(_) => ReloadOutcome::Refused,
            });
        }
        self.update_admin();
        let path = place.0.display();
        stderr::print(&match followed {
            Ok(later) => format!("acp-relay: {path} was reloaded{later}"),
            Err(_) => {
                format!("acp-relay: {path} was read again and has faults; nothing was changed")
            }
        });
        systemd::ready(&self.status());
    }

    /// Applies the configuration file, and returns a remark about what needs a restart. With faults,
    /// which are printed, nothing changes.
    async fn follow(&mut self, place: &ConfigFile) -> Result<String, ExitCode> {
        let file = config::load(place)?;
        self.apply(&file).await?;
        self.file = file.clone();
        let changed = ["log", "admin", "agent-connect", "cluster", "traces"]
            .into_iter()
            .filter(|table| !file.keys.has_same(table, &self.begun_with.keys))
            .map(|table| format!("[{table}]"));
        let changed: Vec<String> = changed.collect();
        Ok(match changed.is_empty() {
            true => String::new(),
            false => format!(
                "; changes in {} take effect after a restart",
                changed.join(", ")
            ),
        })
    }

    /// Applies a configuration. With faults, which are printed, nothing changes.
    async fn apply(&mut self, file: &Config) -> Result<(), ExitCode> {
        let effective = effective(&self.line, file)?;
        let shared = (&self.stop, self.traces.as_ref(), &self.role);
        let (listeners, active) = plan(&effective, shared, Some(&self.active))?;
        self.attach_metrics(&active);
        let followed = self.listening.follow(listeners).await;
        followed.map_err(|error| exit::open_failed(&error))?;
        if !Arc::ptr_eq(&active.admission, &self.active.admission) {
            active.admission.activate();
        }
        self.sweeper = active.context.sweep();
        self.active = active;
        Ok(())
    }

    /// Serves the agents that hosts have now.
    async fn replan(&mut self) {
        let file = self.file.clone();
        if self.apply(&file).await.is_ok() {
            tracing::info!("the hosts have {} now", self.status());
            systemd::ready(&self.status());
        }
    }

    fn status(&self) -> String {
        let listeners = counted(self.listening.count(), "listener");
        let agents = counted(self.active.agents.all.len(), "agent");
        format!("{listeners}, {agents}")
    }
}
