//! `acp-relay serve`: listens for clients and gives each an agent of its own.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::cli::{self, Serve};
use super::{exit, shutdown};
use crate::relay::{self, End, Stop};
use crate::tap::{Journal, Taps};
use crate::transport::registry;
use crate::transport::{Arrival, Endpoint, Link, Listener, OpenError, OpenErrorKind, Setup, Tls};
use crate::wire::Limits;
use crate::wire::reply::{self, Reason, Source};

/// Time to wait before accepting again when the operating system refuses (no descriptors left).
const BREATHER: Duration = Duration::from_millis(100);

/// What every client is given.
struct House {
    agent: Endpoint,
    agent_setup: Setup,
    limits: Arc<Limits>,
    seats: Arc<Semaphore>,
    stop: Stop,
    conversations: TaskTracker,
}

/// Runs the subcommand.
pub(super) fn run(args: Serve) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return cli::fail(exit::SYSTEM, &format!("cannot start the runtime: {error}"));
        }
    };
    let code = runtime.block_on(async {
        match serve(args).await {
            Ok(code) => code,
            Err(error) => cli::fail(exit::of_open_error(&error), &error),
        }
    });
    // The thread that reads our stdin may be in the middle of a read that never returns.
    runtime.shutdown_background();
    code
}

async fn serve(args: Serve) -> Result<ExitCode, OpenError> {
    let stop = Stop::default();
    if let Err(error) = shutdown::watch(stop.clone()) {
        return Ok(cli::fail(
            exit::SYSTEM,
            &format!("cannot listen for signals: {error}"),
        ));
    }
    let limits = args.common.limits();
    let agent_setup = args.common.agent_setup(&limits);
    let client_setup = Setup {
        framing: args.client_framing.fixed(),
        tls: Tls {
            cert: args.tls_cert,
            key: args.tls_key,
            ca: None,
        },
        ..agent_setup.clone()
    };
    let agent = args.agent.unwrap_or(Endpoint::Exec(args.command));
    registry::check(&agent)?;
    let mut listeners = Vec::new();
    for endpoint in &args.listen {
        check_exposure(endpoint, args.dangerously_no_auth)?;
        listeners.push(registry::listen(endpoint, &client_setup).await?);
    }
    let house = Arc::new(House {
        agent,
        agent_setup,
        seats: Arc::new(Semaphore::new(limits.connections)),
        limits,
        stop,
        conversations: TaskTracker::new(),
    });
    Ok(receive_all(house, listeners).await)
}

/// Serves until all listeners are done or the program is told to stop.
async fn receive_all(house: Arc<House>, listeners: Vec<Box<dyn Listener>>) -> ExitCode {
    // Conversations on our own stdio report their end here: it is our exit code.
    let (report, mut last) = mpsc::channel(1);
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        let address = listener.address();
        if address != Endpoint::Stdio {
            eprintln!("acp-relay: listening on {address}");
        }
        tasks.spawn(receive(Arc::clone(&house), listener, report.clone()));
    }
    drop(report);
    while tasks.join_next().await.is_some() {}
    house.conversations.close();
    house.conversations.wait().await;
    match last.recv().await {
        Some(end) => exit::of_end(&end),
        None if house.stop.forced.is_cancelled() => ExitCode::from(exit::FORCED),
        None => ExitCode::SUCCESS,
    }
}

/// Takes the clients of one listener.
async fn receive(house: Arc<House>, mut listener: Box<dyn Listener>, report: mpsc::Sender<End>) {
    let stdio = listener.address() == Endpoint::Stdio;
    loop {
        let arrival = tokio::select! {
            arrival = listener.accept() => arrival,
            () = house.stop.asked.cancelled() => return,
        };
        match arrival {
            None => return,
            Some(Err(error)) => {
                tracing::warn!("cannot accept on {}: {error}", listener.address());
                tokio::time::sleep(BREATHER).await;
            }
            Some(Ok(arrival)) => {
                let span = tracing::info_span!("client", from = arrival.from);
                let report = stdio.then(|| report.clone());
                let conversation = welcome(Arc::clone(&house), arrival, report).instrument(span);
                house.conversations.spawn(conversation);
            }
        }
    }
}

/// Finishes a client's handshake and carries its conversation.
async fn welcome(house: Arc<House>, arrival: Arrival, report: Option<mpsc::Sender<End>>) {
    let Ok(_seat) = Arc::clone(&house.seats).try_acquire_owned() else {
        tracing::warn!(
            "refused: {} clients are connected already (--limit connections=N)",
            house.limits.connections
        );
        return;
    };
    // Whoever is not in a conversation yet does not hold up our end.
    let opened = tokio::select! {
        opened = open(&house, arrival) => opened,
        () = house.stop.asked.cancelled() => return,
    };
    if let Some((client, agent)) = opened {
        let end = carry(&house, client, agent).await;
        if let Some(report) = report {
            let _ = report.try_send(end);
        }
    }
}

/// Finishes a client's handshake and finds it an agent; `None` when it has been turned away.
async fn open(house: &House, arrival: Arrival) -> Option<(Link, Link)> {
    let within = house.limits.handshake;
    let client = match tokio::time::timeout(within, arrival.finish).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => {
            tracing::warn!("turned away: {error}");
            return None;
        }
        Err(_) => {
            tracing::warn!("turned away: the handshake took longer than {within:?}");
            return None;
        }
    };
    match registry::connect(&house.agent, &house.agent_setup).await {
        Ok(agent) => Some((client, agent)),
        Err(error) => {
            tracing::error!("no agent: {error}");
            let mut reason = Reason::new(
                reply::PEER_LOST,
                format!("there is no agent: {}", error.what),
            );
            reason.source = Source::Agent;
            if let Err(error) = relay::turn_away(client, &reason, &house.limits).await {
                tracing::debug!("the client could not be told: {error}");
            }
            None
        }
    }
}

async fn carry(house: &House, client: Link, agent: Link) -> End {
    tracing::info!(agent = agent.peer.name, "connected");
    let taps = Taps::default().with(Journal::default());
    let end = relay::run(client, agent, Arc::clone(&house.limits), taps, &house.stop).await;
    tracing::info!(cause = ?end.cause, notes = ?end.counts.notes().collect::<Vec<_>>(), "over");
    end
}

/// Refuses to open a door to the network that nobody guards.
fn check_exposure(endpoint: &Endpoint, accepted: bool) -> Result<(), OpenError> {
    if endpoint.is_loopback() || accepted {
        return Ok(());
    }
    Err(OpenError {
        kind: OpenErrorKind::Forbidden,
        endpoint: endpoint.to_string(),
        what: "this address can be reached from other machines, and whoever reaches it can run the agent".to_owned(),
        remedy: Some(
            "Listen on 127.0.0.1 or a Unix socket and reach it through ssh, or accept the risk with --dangerously-no-auth".to_owned(),
        ),
    })
}
