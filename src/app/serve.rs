//! `acp-relay serve`: listens for clients and gives each an agent of its own.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::cli::{self, OnDisconnect, Serve};
use super::common::Ground;
use super::conversation::{self, carry, turn_away};
use super::door::{Door, Sign};
use super::seldom::Seldom;
use super::{endpoints, exit, listeners, remote, runtime, stderr};
use crate::relay::{Harbour, Received};
use crate::transport::registry;
use crate::transport::{Arrival, Endpoint, Front, Link, Listener, PeerKind};
use crate::transport::{OpenError, Setup, Tls};
use crate::wire::reply::{self, Reason};

/// Time to wait before accepting again when the operating system refuses (no descriptors left).
const BREATHER: Duration = Duration::from_millis(100);

/// Clients beyond the limit that are told so at a time. Beyond it: closed without a word.
const APOLOGIES: usize = 64;

/// What every client is given.
struct House {
    agent: Endpoint,
    door: Door,
    ground: Ground,
    seats: Semaphore,
    apologies: Semaphore,
    /// Where agents wait for clients that come back; none when they do not.
    harbour: Option<Harbour>,
    conversations: TaskTracker,
    refusals: Refusals,
}

/// What strangers can cause, and what is said of it.
#[derive(Default)]
struct Refusals {
    no_arrival: Seldom,
    no_seat: Seldom,
    no_handshake: Seldom,
}

/// Tasks that a worker runs before it looks at the sockets again. With tokio's 61 one client that
/// never stops talking keeps all others unheard for milliseconds.
const GLANCE: u32 = 4;

/// Where a conversation on our own stdio reports its end: it is our exit code.
type Report = mpsc::Sender<ExitCode>;

/// Runs the subcommand.
pub(super) fn run(args: Serve) -> ExitCode {
    let mut builder = Builder::new_multi_thread();
    builder.event_interval(GLANCE);
    runtime::drive(builder, async {
        match serve(args).await {
            Ok(code) => code,
            Err(error) => cli::fail(exit::of_open_error(&error), &error),
        }
    })
}

async fn serve(args: Serve) -> Result<ExitCode, OpenError> {
    let mut ground = match args.common.lay() {
        Ok(ground) => ground,
        Err(code) => return Ok(code),
    };
    ground.client.tls = Tls {
        cert: args.tls_cert,
        key: args.tls_key,
        client_ca: args.door.tls_client_ca.clone(),
        ..Tls::default()
    };
    ground.client.front = Front {
        origins: args.allow_origin,
        hosts: args.allow_host,
        affinity_cookie: args.affinity_cookie,
        no_elephant: args.no_elephant,
    };
    let agent = match sense(args.agent, args.command, &args.listen, &ground.client) {
        Ok(agent) => agent,
        Err(fault) => return Ok(cli::fail(exit::USAGE, &fault)),
    };
    if let Err(fault) = remote::check(&agent, &ground.agent) {
        return Ok(cli::fail(exit::USAGE, &fault));
    }
    registry::check(&agent)?;
    let door = Door::open(&args.door, &args.listen, &ground.limits)?;
    ground.client.gate = door.gate();
    let listeners = tokio::select! {
        listeners = listen(&args.listen, &ground.client) => listeners?,
        () = ground.stop.asked.cancelled() => {
            return Ok(cli::fail(exit::STOPPED, &"stopped before anything was listened at"));
        }
    };
    door.watch();
    let house = Arc::new(House {
        agent,
        door,
        seats: Semaphore::new(ground.limits.connections),
        harbour: (args.on_disconnect == OnDisconnect::Detach)
            .then(|| Harbour::new(Arc::clone(&ground.limits))),
        ground,
        apologies: Semaphore::new(APOLOGIES),
        conversations: TaskTracker::new(),
        refusals: Refusals::default(),
    });
    Ok(receive_all(house, listeners).await)
}

/// The agent, when all that was asked for makes sense.
fn sense(
    agent: Option<Endpoint>,
    command: Vec<OsString>,
    listen: &[Endpoint],
    setup: &Setup,
) -> Result<Endpoint, String> {
    for endpoint in listen {
        endpoints::check_listener(endpoint)?;
    }
    endpoints::check_certificate(listen, &setup.tls)?;
    listeners::check(listen, &setup.front)?;
    endpoints::agent(agent, command, "serve --agent ENDPOINT")
}

async fn listen(
    endpoints: &[Endpoint],
    setup: &Setup,
) -> Result<Vec<Box<dyn Listener>>, OpenError> {
    let mut listeners = Vec::new();
    for endpoint in endpoints {
        listeners.push(registry::listen(endpoint, setup).await?);
    }
    Ok(listeners)
}

/// Serves until all listeners are done or the program is told to stop.
async fn receive_all(house: Arc<House>, listeners: Vec<Box<dyn Listener>>) -> ExitCode {
    let (report, mut last) = mpsc::channel(1);
    let mut tasks = tokio::task::JoinSet::new();
    let mut signs = Vec::new();
    for listener in listeners {
        let address = listener.address();
        signs.extend(Sign::hang_out(&address));
        if address != Endpoint::Stdio {
            stderr::say(&format!("acp-relay: listening on {address}"));
        }
        tasks.spawn(receive(Arc::clone(&house), listener, report.clone()));
    }
    drop(report);
    while tasks.join_next().await.is_some() {}
    house.conversations.close();
    house.conversations.wait().await;
    match last.recv().await {
        _ if house.ground.stop.forced.is_cancelled() => ExitCode::from(exit::STOPPED),
        Some(code) => code,
        None => ExitCode::SUCCESS,
    }
}

/// Takes the clients of one listener.
async fn receive(house: Arc<House>, mut listener: Box<dyn Listener>, report: Report) {
    let stdio = listener.address() == Endpoint::Stdio;
    loop {
        let arrival = tokio::select! {
            arrival = listener.accept() => arrival,
            () = house.ground.stop.asked.cancelled() => return,
        };
        match arrival {
            None => return,
            Some(Err(error)) => {
                let address = listener.address();
                let seldom = &house.refusals.no_arrival;
                seldom.warn(format_args!("cannot accept on {address}: {error}"));
                tokio::time::sleep(BREATHER).await;
            }
            Some(Ok(arrival)) => {
                let span = tracing::info_span!("client", from = arrival.from);
                let report = stdio.then(|| report.clone());
                let conversation = attend(Arc::clone(&house), arrival, report);
                house.conversations.spawn(conversation.instrument(span));
            }
        }
    }
}

/// Has a client welcomed, and reports its end.
async fn attend(house: Arc<House>, arrival: Arrival, report: Option<Report>) {
    let code = house.welcome(arrival).await;
    if let Some(report) = report {
        // There is only one conversation on our stdio.
        let _ = report.try_send(code);
    }
}

impl House {
    /// Finishes a client's handshake and carries its conversation.
    async fn welcome(&self, arrival: Arrival) -> ExitCode {
        let Ok(_seat) = self.seats.try_acquire() else {
            return self.apologise(arrival).await;
        };
        let client = match self.shake_hands(arrival).await {
            Ok(client) => client,
            Err(code) => return code,
        };
        let (client, _stay) = match self.door.receive(client) {
            Ok(received) => received,
            Err((client, reason)) => {
                turn_away(client, &reason, &self.ground.limits, &self.ground.stop).await;
                return ExitCode::from(exit::UNAVAILABLE);
            }
        };
        let Some(client) = self.receive(client).await else {
            return ExitCode::SUCCESS;
        };
        match conversation::reach(&self.agent, &self.ground.agent, &self.ground.stop).await {
            Ok(agent) => {
                let end = carry(client, agent, &self.ground).await;
                exit::of_end(&end, &self.ground)
            }
            Err(why) => {
                tracing::error!("no agent: {why}");
                turn_away(
                    client,
                    &why.reason(),
                    &self.ground.limits,
                    &self.ground.stop,
                )
                .await;
                ExitCode::from(why.code())
            }
        }
    }

    /// Meets a client that may have come back for its agent; `None` when it has found it.
    async fn receive(&self, client: Link) -> Option<Link> {
        let Some(harbour) = self.harbour.as_ref().filter(|_| can_return(&client)) else {
            return Some(client);
        };
        let received = tokio::select! {
            received = harbour.receive(client) => received,
            () = self.ground.stop.asked.cancelled() => return None,
        };
        match received {
            Received::New(client) => Some(harbour.moor(client)),
            Received::Back => None,
        }
    }

    /// Tells a client that there is no seat for it, unless that many are being told already.
    async fn apologise(&self, arrival: Arrival) -> ExitCode {
        let full = format!(
            "{} clients are connected already",
            self.ground.limits.connections
        );
        let seldom = &self.refusals.no_seat;
        seldom.warn(format_args!("refused: {full} (--limit connections=N)"));
        if let Ok(_turn) = self.apologies.try_acquire()
            && let Ok(client) = self.shake_hands(arrival).await
        {
            let mut reason = Reason::new(reply::OVERLOADED, full);
            reason.retryable = true;
            turn_away(client, &reason, &self.ground.limits, &self.ground.stop).await;
        }
        ExitCode::from(exit::UNAVAILABLE)
    }

    async fn shake_hands(&self, arrival: Arrival) -> Result<Link, ExitCode> {
        let within = self.ground.limits.handshake;
        let seldom = &self.refusals.no_handshake;
        let finished = tokio::select! {
            finished = tokio::time::timeout(within, arrival.finish) => finished,
            () = self.ground.stop.asked.cancelled() => return Err(ExitCode::from(exit::STOPPED)),
        };
        match finished {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => {
                seldom.warn(format_args!("turned away: {error}"));
                Err(ExitCode::from(exit::of_open_error(&error)))
            }
            Err(_) => {
                let slow = "turned away: the handshake took longer than";
                seldom.warn(format_args!("{slow} {within:?}"));
                Err(ExitCode::from(exit::UNAVAILABLE))
            }
        }
    }
}

/// Whether the end of a client's link may be a broken connection. A byte stream that ends says that
/// the client wants no more, and that it may still be listening.
fn can_return(client: &Link) -> bool {
    client.peer.kind == PeerKind::Remote && !client.peer.half_close
}
