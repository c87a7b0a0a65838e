//! `acp-relay serve` from the command line to the exit code, and reloading on SIGHUP.

use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc};

use super::Serve;
use super::listening::OpenListeners;
use super::plan::{ActivePlan, plan};
use super::server::Server;
use super::systemd;
use crate::cli::admin::Admin;
use crate::cli::config::{self, CheckLevel, CommandLine, Config, ConfigFile};
use crate::cli::console::counted;
use crate::cli::record::RecorderFactory;
use crate::cli::telemetry::{self, LogArgs};
use crate::cli::traces::Traces;
use crate::cli::{exit, runtime, shutdown, stderr};
use crate::observe::metrics::{Metrics, ReloadOutcome};
use crate::proxy::StopSignals;
use crate::transport::Inherited;

/// A running `serve`.
struct ServeLoop {
    line: CommandLine,
    /// The configuration file, if there is one, and its content at the start.
    place: Option<ConfigFile>,
    begun_with: Config,
    stop: StopSignals,
    traces: Option<Traces>,
    admin: Option<Admin>,
    listening: OpenListeners,
    active: ActivePlan,
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
    let start = || {
        let place = config_file(args);
        let file = place.as_ref().map_or_else(|| Ok(Config::default()), load)?;
        let (args, log) = effective(&line, &file)?;
        telemetry::start(&log).map_err(|error| exit::fail(exit::USAGE, &error))?;
        Ok((place, file, args))
    };
    let (place, file, args) = match start() {
        Ok(started) => started,
        Err(code) => return code,
    };
    // Clients are served on separate worker threads.
    runtime::drive(Builder::new_current_thread(), async {
        let served = serve(line, args, place, file, sockets).await;
        served.unwrap_or_else(|code| code)
    })
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

/// Reads the configuration file. Errors are printed, and the exit code is returned.
fn load(place: &ConfigFile) -> Result<Config, ExitCode> {
    let text = place.text()?;
    place.check_owner()?;
    let read = config::read(place, &text, CheckLevel::Values);
    read.map_err(|faults| exit::fail(exit::CONFIG, &faults.report()))
}

/// The options of the command line over those of the file. Errors are printed, and the exit code
/// is returned.
fn effective(line: &CommandLine, file: &Config) -> Result<(Serve, LogArgs), ExitCode> {
    let effective = line.effective(file);
    effective.map_err(|error| exit::fail(exit::USAGE, &error))
}

async fn serve(
    line: CommandLine,
    args: Serve,
    place: Option<ConfigFile>,
    file: Config,
    sockets: Inherited,
) -> Result<ExitCode, ExitCode> {
    let stop = StopSignals::default();
    let again = Arc::new(Notify::new());
    shutdown::watch(stop.clone(), place.as_ref().map(|_| Arc::clone(&again)))?;
    let traces = args.common.start_traces()?;
    let mut plan = plan(&args, &file, (&stop, traces.as_ref()), None)?;
    for (_, listener) in &mut plan.listeners {
        listener.setup.inherited = sockets.clone();
    }
    let admin = Admin::start(
        args.admin.listen.as_ref(),
        stop.requested.clone(),
        plan.active.recorders().map(RecorderFactory::folder),
        plan.active.workers(),
        traces.as_ref(),
    );
    let admin = admin.await?;
    let metrics = admin.as_ref().map(|admin| Arc::clone(admin.metrics()));
    let server = Arc::new(Server::new(stop.clone(), metrics));
    attach_metrics(admin.as_ref(), &plan.active);
    let (report, mut last) = mpsc::channel(1);
    let mut serve_loop = ServeLoop {
        listening: OpenListeners::new(Arc::clone(&server), report),
        active: plan.active,
        line,
        place,
        begun_with: file,
        stop,
        traces,
        admin,
    };
    serve_loop.active.admission.activate();
    let listening = tokio::select! {
        listening = serve_loop.listening.follow(plan.listeners) => listening,
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
    serve_loop.active.admission.watch();
    serve_loop.active.sweep();
    serve_loop.run(&again).await;
    server.conversations.close();
    server.conversations.wait().await;
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

/// Connects the metrics, if they are collected, to the admission and the agents of a plan.
fn attach_metrics(admin: Option<&Admin>, plan: &ActivePlan) {
    let Some(admin) = admin else {
        return;
    };
    let events: Arc<Metrics> = Arc::clone(admin.metrics());
    plan.admission.gate().set_events(events);
    for agent in plan.agents.all() {
        // Its series exist before its first client, so that a first failure is an increase.
        let _ = admin.metrics().agent(agent.display_name());
        if let Some(store) = &agent.detached {
            store.set_metrics(admin.metrics());
        }
    }
}

impl ServeLoop {
    /// Serves until all listeners are closed or the program is asked to stop.
    async fn run(&mut self, again: &Notify) {
        systemd::ready(&self.status());
        let stop = self.stop.requested.clone();
        loop {
            tokio::select! {
                // Listeners close when a stop is requested, possibly before this loop sees it.
                () = self.listening.ended() => break,
                () = stop.cancelled() => break,
                () = again.notified() => self.reload().await,
            }
        }
        systemd::stopping();
        self.listening.ended().await;
        self.update_admin();
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
        match followed {
            Ok(later) => stderr::print(&format!("acp-relay: {path} was reloaded{later}")),
            Err(_) => stderr::print(&format!(
                "acp-relay: {path} was read again and has faults; nothing was changed"
            )),
        }
        systemd::ready(&self.status());
    }

    /// Applies the configuration file, and returns a remark about what needs a restart. With faults,
    /// which are printed, nothing changes.
    async fn follow(&mut self, place: &ConfigFile) -> Result<String, ExitCode> {
        let file = load(place)?;
        let (args, _) = effective(&self.line, &file)?;
        let shared = (&self.stop, self.traces.as_ref());
        let plan = plan(&args, &file, shared, Some(&self.active))?;
        attach_metrics(self.admin.as_ref(), &plan.active);
        let followed = self.listening.follow(plan.listeners).await;
        followed.map_err(|error| exit::open_failed(&error))?;
        self.activate(plan.active);
        Ok(self.needs_restart(&file))
    }

    /// The changed sections of a file that need a restart.
    fn needs_restart(&self, file: &Config) -> String {
        let before = &self.begun_with.keys;
        let tables = ["log", "admin", "agent-connect", "traces"];
        let changed = tables
            .iter()
            .filter(|table| !file.keys.has_same(table, before));
        let names: Vec<String> = changed.map(|table| format!("[{table}]")).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(
            "; changes in {} take effect after a restart",
            names.join(", ")
        )
    }

    fn activate(&mut self, mut active: ActivePlan) {
        if !Arc::ptr_eq(&active.admission, &self.active.admission) {
            active.admission.activate();
            active.admission.watch();
        }
        active.sweep();
        self.active = active;
    }

    fn status(&self) -> String {
        let listeners = counted(self.listening.count(), "listener");
        let agents = counted(self.active.agents.named.len().max(1), "agent");
        format!("{listeners}, {agents}")
    }
}
