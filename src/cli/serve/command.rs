//! `acp-relay serve` from the command line to the exit code, and reloading on SIGHUP.

use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc};

use super::house::House;
use super::listening::Listening;
use super::manager;
use super::plan::{InForce, Plan, plan};
use crate::cli::admin::{self, Admin, Turnstile};
use crate::cli::cli::{self, Serve};
use crate::cli::config::{self, Config, Look, Place};
use crate::cli::console::counted;
use crate::cli::record::Studio;
use crate::cli::telemetry::{self, LogArgs};
use crate::cli::traces::Traces;
use crate::cli::{exit, runtime, shutdown, stderr};
use crate::observe::metrics::Reloaded;
use crate::proxy::Stop;
use crate::transport::Inherited;

/// A running `serve`.
struct Server {
    args: Serve,
    /// The configuration file, if there is one, and its content at the start.
    place: Option<Place>,
    begun_with: Config,
    stop: Stop,
    traces: Option<Traces>,
    admin: Option<Admin>,
    listening: Listening,
    in_force: InForce,
}

/// The sockets passed by systemd. Errors are printed, and the exit code is returned.
pub(in crate::cli) fn sockets() -> Result<Inherited, ExitCode> {
    let passed = sd_listen_fds::get();
    let passed = passed.map_err(|error| {
        let fault = format!("{error}: LISTEN_PID and LISTEN_FDS are not set as systemd sets them");
        cli::fail(exit::USAGE, &fault)
    })?;
    let sockets = passed.into_iter().map(|(_, socket)| socket.into_std());
    Ok(Inherited::new(sockets.collect()))
}

/// Runs the subcommand. `log` has the log options of the command line.
pub(in crate::cli) fn run(args: Serve, log: &LogArgs, sockets: Inherited) -> ExitCode {
    let place = place(&args);
    let file = match place.as_ref().map_or_else(|| Ok(Config::default()), load) {
        Ok(file) => file,
        Err(code) => return code,
    };
    if let Err(error) = telemetry::start(&log.over(&file.log)) {
        return cli::fail(exit::USAGE, &error);
    }
    // Clients are served on separate worker threads.
    runtime::drive(Builder::new_current_thread(), async {
        match serve(args, place, file, sockets).await {
            Ok(code) | Err(code) => code,
        }
    })
}

/// The configuration file: the one given, or the default one if nothing to serve is given.
pub(in crate::cli) fn place(args: &Serve) -> Option<Place> {
    let named = args.config.clone().map(Place);
    let says_nothing = args.listen.is_empty()
        && args.agent.is_none()
        && args.profile.is_none()
        && args.command.is_empty();
    named.or_else(|| Place::find().filter(|_| says_nothing))
}

/// Reads the configuration file. Errors are printed, and the exit code is returned.
fn load(place: &Place) -> Result<Config, ExitCode> {
    let text = place
        .text()
        .map_err(|(code, fault)| cli::fail(code, &fault))?;
    let owned = place.check_owner();
    owned.map_err(|fault| cli::fail(exit::FORBIDDEN, &fault))?;
    let read = config::read(place, &text, Look::Words);
    read.map_err(|faults| cli::fail(exit::CONFIG, &faults))
}

async fn serve(
    args: Serve,
    place: Option<Place>,
    file: Config,
    sockets: Inherited,
) -> Result<ExitCode, ExitCode> {
    let stop = Stop::default();
    let again = place.as_ref().map(|_| Arc::new(Notify::new()));
    shutdown::watch_with(stop.clone(), again.clone()).map_err(|error| shutdown::failed(&error))?;
    let traces = args.common.trace(&file)?;
    let mut plan = plan(&args, &file, (&stop, traces.as_ref()), None)?;
    for (_, station) in &mut plan.listeners {
        station.setup.inherited = sockets.clone();
    }
    let admin = args.admin.as_ref().or(file.admin.as_ref());
    let admin = open_admin(admin, &plan, &stop).await?;
    let ledger = admin.as_ref().map(|admin| Arc::clone(admin.ledger()));
    let house = Arc::new(House::new(stop.clone(), ledger));
    if let (Some(admin), Some(traces)) = (&admin, &traces) {
        admin.ledger().count_spans(traces.tally());
    }
    watch(admin.as_ref(), &plan.in_force);
    let (report, mut last) = mpsc::channel(1);
    let mut server = Server {
        listening: Listening::new(Arc::clone(&house), report),
        in_force: plan.in_force,
        args,
        place,
        begun_with: file,
        stop,
        traces,
        admin,
    };
    server.in_force.door.stand();
    let listening = tokio::select! {
        listening = server.listening.follow(plan.listeners) => listening,
        () = house.stop.asked.cancelled() => {
            let fault = "stopped before any listener was open";
            return Err(cli::fail(exit::STOPPED, &fault));
        }
    };
    listening.map_err(|error| cli::fail(exit::of_open_error(&error), &error))?;
    if let Some(unused) = sockets.unused() {
        let fault =
            format!("systemd has passed a socket at {unused}, and no listener has that address");
        return Err(cli::fail(exit::CONFIG, &fault));
    }
    if let Some(studio) = server.in_force.studio() {
        studio.announce(false);
    }
    server.tell_admin();
    server.in_force.door.watch();
    server.in_force.sweep();
    server.run(again.as_deref()).await;
    house.conversations.close();
    house.conversations.wait().await;
    if let Some(traces) = &server.traces {
        traces.finish();
    }
    drop(server);
    Ok(match last.recv().await {
        _ if house.stop.forced.is_cancelled() => ExitCode::from(exit::STOPPED),
        Some(code) => code,
        None => ExitCode::SUCCESS,
    })
}

/// Connects the metrics, if they are collected, to the admission and the agents of a plan.
fn watch(admin: Option<&Admin>, plan: &InForce) {
    let Some(admin) = admin else {
        return;
    };
    let turnstile = Turnstile(Arc::clone(admin.ledger()));
    plan.door.gate().be_watched(Arc::new(turnstile));
    for agent in plan.roster.all() {
        // Its series exist before its first client, so that a first failure is an increase.
        let _ = admin.ledger().agent(agent.called());
        if let Some(harbour) = &agent.harbour {
            harbour.be_watched(admin.ledger());
        }
    }
}

/// Opens the admin listener, if configured. Errors are printed, and the exit code is returned.
async fn open_admin(
    place: Option<&admin::Place>,
    plan: &Plan,
    stop: &Stop,
) -> Result<Option<Admin>, ExitCode> {
    let Some(place) = place else {
        return Ok(None);
    };
    let folder = plan.in_force.studio().map(Studio::folder);
    let admin = Admin::begin(place, stop.asked.clone(), folder).await?;
    admin.tell_of(plan.in_force.workers());
    Ok(Some(admin))
}

impl Server {
    /// Serves until all listeners are closed or the program is asked to stop.
    async fn run(&mut self, again: Option<&Notify>) {
        manager::ready(&self.status());
        let stop = self.stop.asked.clone();
        loop {
            tokio::select! {
                // Listeners close when a stop is requested, possibly before this loop sees it.
                () = self.listening.ended() => break,
                () = stop.cancelled() => break,
                () = asked(again) => self.reload().await,
            }
        }
        manager::stopping();
        self.listening.ended().await;
        self.tell_admin();
    }

    /// Reports the addresses of the listeners to the admin listener.
    fn tell_admin(&self) {
        if let Some(admin) = &self.admin {
            admin.ready(self.listening.addresses());
        }
    }

    /// Reloads the configuration file. With faults, nothing changes.
    async fn reload(&mut self) {
        let Some(place) = self.place.clone() else {
            return;
        };
        manager::reloading();
        let file = load(&place);
        let made = |file: &Config| {
            let held = (&self.stop, self.traces.as_ref());
            plan(&self.args, file, held, Some(&self.in_force))
        };
        let plan = file.and_then(|file| Ok((made(&file)?, self.later(&file))));
        let followed = match plan {
            Ok((plan, later)) => {
                watch(self.admin.as_ref(), &plan.in_force);
                let followed = self.listening.follow(plan.listeners).await;
                followed
                    .map(|()| self.take_on(plan.in_force))
                    .map(|()| later)
                    .map_err(|error| cli::fail(exit::of_open_error(&error), &error))
            }
            Err(code) => Err(code),
        };
        if let Some(admin) = &self.admin {
            admin.ledger().reloaded(match &followed {
                Ok(_) => Reloaded::Taken,
                Err(_) => Reloaded::Refused,
            });
        }
        self.tell_admin();
        let path = place.0.display();
        match followed {
            Ok(later) => stderr::say(&format!("acp-relay: {path} was reloaded{later}")),
            Err(_) => stderr::say(&format!(
                "acp-relay: {path} was read again and has faults; nothing was changed"
            )),
        }
        manager::ready(&self.status());
    }

    /// The changed sections of a file that need a restart.
    fn later(&self, file: &Config) -> String {
        let before = &self.begun_with;
        let changed = [
            ("[log]", file.log != before.log),
            ("[admin]", file.admin != before.admin),
            (
                "[agent-connect]",
                file.agent_connect != before.agent_connect,
            ),
            ("[traces]", file.traces != before.traces),
        ];
        let changed = changed.iter().filter(|(_, changed)| *changed);
        let names: Vec<&str> = changed.map(|(name, _)| *name).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(
            "; changes in {} take effect after a restart",
            names.join(", ")
        )
    }

    fn take_on(&mut self, mut in_force: InForce) {
        if !Arc::ptr_eq(&in_force.door, &self.in_force.door) {
            in_force.door.stand();
            in_force.door.watch();
        }
        in_force.sweep();
        self.in_force = in_force;
    }

    fn status(&self) -> String {
        let listeners = counted(self.listening.count(), "listener");
        let agents = counted(self.in_force.roster.named.len().max(1), "agent");
        format!("{listeners}, {agents}")
    }
}

/// Waits for a request to reload.
async fn asked(again: Option<&Notify>) {
    match again {
        Some(again) => again.notified().await,
        None => std::future::pending().await,
    }
}
