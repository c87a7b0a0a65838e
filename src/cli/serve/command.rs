//! The subcommand: from the command line to the exit code, and what happens on SIGHUP.
//!
//! Not here: what is served (see `plan`), and where (see `listening`).

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

/// A serving relay.
struct Server {
    args: Serve,
    /// The configuration file, if there is one, and what it said when we began.
    place: Option<Place>,
    begun_with: Config,
    stop: Stop,
    traces: Option<Traces>,
    admin: Option<Admin>,
    listening: Listening,
    in_force: InForce,
}

/// The sockets that systemd has bound for us. What is wrong is said, and the exit code returned.
pub(in crate::cli) fn sockets() -> Result<Inherited, ExitCode> {
    let passed = sd_listen_fds::get();
    let passed = passed.map_err(|error| {
        let fault = format!("{error}: LISTEN_PID and LISTEN_FDS are not as systemd has them");
        cli::fail(exit::USAGE, &fault)
    })?;
    let sockets = passed.into_iter().map(|(_, socket)| socket.into_std());
    Ok(Inherited::new(sockets.collect()))
}

/// Runs the subcommand. `log` is what the command line says of the log.
pub(in crate::cli) fn run(args: Serve, log: &LogArgs, sockets: Inherited) -> ExitCode {
    let place = place(&args);
    let file = match place.as_ref().map_or_else(|| Ok(Config::default()), load) {
        Ok(file) => file,
        Err(code) => return code,
    };
    if let Err(error) = telemetry::start(&log.over(&file.log)) {
        return cli::fail(exit::USAGE, &error);
    }
    // Clients are served by workers of their own.
    runtime::drive(Builder::new_current_thread(), async {
        match serve(args, place, file, sockets).await {
            Ok(code) | Err(code) => code,
        }
    })
}

/// The configuration file: the one that was named, or, when nothing else was, the usual one.
pub(in crate::cli) fn place(args: &Serve) -> Option<Place> {
    let named = args.config.clone().map(Place);
    let says_nothing = args.listen.is_empty()
        && args.agent.is_none()
        && args.profile.is_none()
        && args.command.is_empty();
    named.or_else(|| Place::find().filter(|_| says_nothing))
}

/// Reads the configuration file. What is wrong is said, and the exit code returned.
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
    let metrics = admin.as_ref().map(|admin| Arc::clone(admin.metrics()));
    let house = Arc::new(House::new(stop.clone(), metrics));
    if let (Some(admin), Some(traces)) = (&admin, &traces) {
        admin.metrics().set_spans(traces.tally());
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
            let fault = "stopped before anything was listened at";
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

/// Has those who come counted, if anybody counts.
fn watch(admin: Option<&Admin>, plan: &InForce) {
    let Some(admin) = admin else {
        return;
    };
    let turnstile = Turnstile(Arc::clone(admin.metrics()));
    plan.door.gate().be_watched(Arc::new(turnstile));
    for agent in plan.roster.all() {
        // Its figures are there before its first client, whose failure would else be no increase.
        let _ = admin.metrics().agent(agent.called());
        if let Some(harbour) = &agent.harbour {
            harbour.be_watched(admin.metrics());
        }
    }
}

/// Opens the admin listener, if it is wanted. What is wrong is said, and the exit code returned.
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
    /// Serves until all listeners are done or the program is told to stop.
    async fn run(&mut self, again: Option<&Notify>) {
        manager::ready(&self.status());
        let stop = self.stop.asked.clone();
        loop {
            tokio::select! {
                // Listeners end when the end is asked for, and may be faster than we.
                () = self.listening.ended() => break,
                () = stop.cancelled() => break,
                () = asked(again) => self.reload().await,
            }
        }
        manager::stopping();
        self.listening.ended().await;
        self.tell_admin();
    }

    /// Says where the listeners are now.
    fn tell_admin(&self) {
        if let Some(admin) = &self.admin {
            admin.ready(self.listening.addresses());
        }
    }

    /// Reads the configuration file again. With faults, all stays as it is.
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
            admin.metrics().config_reload(match &followed {
                Ok(_) => Reloaded::Taken,
                Err(_) => Reloaded::Refused,
            });
        }
        self.tell_admin();
        let path = place.0.display();
        match followed {
            Ok(later) => stderr::say(&format!("acp-relay: {path} was read again{later}")),
            Err(_) => stderr::say(&format!(
                "acp-relay: {path} was read again and has faults; all stays as it was"
            )),
        }
        manager::ready(&self.status());
    }

    /// What of a file has changed that counts from the next start on.
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
            "; what has changed in {} counts from the next start on",
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

/// Waits until the file is to be read again.
async fn asked(again: Option<&Notify>) {
    match again {
        Some(again) => again.notified().await,
        None => std::future::pending().await,
    }
}
