//! Serves clients: each gets a connection slot, the agent it asks for, and its conversation; or an
//! error that says why not. `accept_loop` accepts them.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::roster::{Agent, Station};
use super::seats::{Seat, Seats};
use crate::cli::admin::Account;
use crate::cli::common::Ground;
use crate::cli::conversation::{self, carry, turn_away};
use crate::cli::door::Stay;
use crate::cli::exit;
use crate::cli::seldom::Seldom;
use crate::jsonrpc::Limits;
use crate::jsonrpc::reply::{self, Reason};
use crate::observe::metrics::{Ledger, Rejection, Transport};
use crate::proxy::{Received, Stop};
use crate::transport::{Arrival, Link, PeerKind};

/// Most clients that are sent an error at a time. More are closed without one.
const APOLOGIES: usize = 64;

/// The state that all clients share.
pub(super) struct House {
    pub(super) stop: Stop,
    pub(super) conversations: TaskTracker,
    pub(super) refusals: Refusals,
    seats: Seats,
    apologies: Semaphore,
    /// Counts clients, if metrics are collected.
    ledger: Option<Arc<Ledger>>,
    arrivals: AtomicU64,
}

/// Rate-limited warnings about what any peer can cause.
#[derive(Default)]
pub(super) struct Refusals {
    pub(super) no_arrival: Seldom,
    no_seat: Seldom,
    no_handshake: Seldom,
}

/// An admitted client and its agent; both count it until it is dropped.
struct Admitted<'s> {
    client: Link,
    _stay: Stay,
    agent: &'s Arc<Agent>,
    _seat: Seat,
}

impl House {
    pub(super) fn new(stop: Stop, ledger: Option<Arc<Ledger>>) -> Self {
        Self {
            stop,
            conversations: TaskTracker::new(),
            refusals: Refusals::default(),
            seats: Seats::default(),
            apologies: Semaphore::new(APOLOGIES),
            ledger,
            arrivals: AtomicU64::new(0),
        }
    }

    /// The next client number, for the log.
    pub(super) fn number(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Finishes a client's handshake and serves its conversation. `transport` is the listener's.
    pub(super) async fn welcome(
        &self,
        arrival: Arrival,
        station: &Station,
        door: Transport,
    ) -> ExitCode {
        let limits = &station.setup.limits;
        if self.stop.asked.is_cancelled() {
            let reason = conversation::NoAgent::Stopped.reason();
            let told = (&reason, door, Rejection::Draining);
            return self.apologise(arrival, told, limits).await;
        }
        let Some(_seat) = self.seats.take(limits.connections) else {
            let reason = full(limits.connections);
            let seldom = &self.refusals.no_seat;
            let hint = "(--limit connections=N)";
            seldom.warn(format_args!("refused: {} {hint}", reason.message));
            let told = (&reason, door, Rejection::Limit);
            return self.apologise(arrival, told, limits).await;
        };
        let client = match self.shake_hands(arrival, limits).await {
            Ok(client) => client,
            Err((code, why)) => {
                if let Some(why) = why {
                    self.rejected(door, why);
                }
                return code;
            }
        };
        let Admitted {
            client,
            _stay,
            agent,
            _seat,
        } = match admit(client, station) {
            Ok(admitted) => admitted,
            Err((client, reason)) => {
                self.rejected(door, Rejection::of(&reason));
                turn_away(client, &reason, limits, &self.stop).await;
                return ExitCode::from(exit::UNAVAILABLE);
            }
        };
        match self.receive(client, agent).await {
            Some(client) => self.converse(client, agent, station, door).await,
            None => ExitCode::SUCCESS,
        }
    }

    /// Runs the conversation of a client and its agent.
    async fn converse(
        &self,
        client: Link,
        agent: &Agent,
        station: &Station,
        door: Transport,
    ) -> ExitCode {
        let own = station.dialect.as_ref().map(|dialect| {
            let ground = &agent.ground;
            let tongues = ground.tongues.of_client(Some(dialect));
            Box::new(Ground {
                tongues: tongues.expect("the dialect was found when the plan was made"),
                ..ground.clone()
            })
        });
        let ground = own.as_deref().unwrap_or(&agent.ground);
        let account = self
            .ledger
            .as_ref()
            .map(|ledger| Account::new(ledger, door, agent.called(), &agent.endpoint));
        match conversation::reach(&agent.endpoint, &ground.agent, &self.stop).await {
            Ok(link) => {
                // Boxed, so that what was needed up to here is not kept for the length of the
                // conversation.
                let end = Box::pin(carry(client, link, None, ground, account)).await;
                exit::of_end(&end, ground)
            }
            Err(why) => {
                tracing::error!(agent = agent.name, "no agent: {why}");
                if let Some(account) = account {
                    account.fail();
                }
                let limits = &station.setup.limits;
                turn_away(client, &why.reason(), limits, &self.stop).await;
                ExitCode::from(why.code())
            }
        }
    }

    /// Reattaches a client to its detached conversation; `None` if it had one.
    async fn receive(&self, client: Link, agent: &Agent) -> Option<Link> {
        let Some(harbour) = agent.harbour.as_ref().filter(|_| can_return(&client)) else {
            return Some(client);
        };
        let received = tokio::select! {
            received = harbour.receive(client) => received,
            () = self.stop.asked.cancelled() => return None,
        };
        match received {
            Received::New(client) => Some(harbour.moor(client)),
            Received::Back => None,
        }
    }

    /// Tells a client why it is not served, unless too many are being told already. It is counted
    /// once: a client that fails its handshake or credentials is counted for that.
    async fn apologise(
        &self,
        arrival: Arrival,
        (reason, door, why): (&Reason, Transport, Rejection),
        limits: &Limits,
    ) -> ExitCode {
        let unavailable = ExitCode::from(exit::UNAVAILABLE);
        let Ok(_turn) = self.apologies.try_acquire() else {
            self.rejected(door, why);
            return unavailable;
        };
        match self.shake_hands(arrival, limits).await {
            Ok(client) => {
                self.rejected(door, why);
                turn_away(client, reason, limits, &self.stop).await;
            }
            Err((_, None)) => {}
            Err((_, Some(_))) => self.rejected(door, why),
        }
        unavailable
    }

    /// Counts a client that a listener could not accept.
    pub(super) fn unaccepted(&self, door: Transport) {
        if let Some(ledger) = &self.ledger {
            ledger.unaccepted(door);
        }
    }

    fn rejected(&self, door: Transport, why: Rejection) {
        if let Some(ledger) = &self.ledger {
            ledger.rejected(door, why);
        }
    }

    async fn shake_hands(
        &self,
        arrival: Arrival,
        limits: &Limits,
    ) -> Result<Link, (ExitCode, Option<Rejection>)> {
        let within = limits.handshake;
        let seldom = &self.refusals.no_handshake;
        // A client that connects while listeners stay open to drain gets the reason.
        let stop = match self.stop.asked.is_cancelled() {
            true => &self.stop.forced,
            false => &self.stop.asked,
        };
        let finished = tokio::select! {
            finished = tokio::time::timeout(within, arrival.finish) => finished,
            () = stop.cancelled() => {
                return Err((ExitCode::from(exit::STOPPED), Some(Rejection::Draining)));
            }
        };
        match finished {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => {
                seldom.warn(format_args!("rejected: {error}"));
                // Counted where it was rejected.
                Err((ExitCode::from(exit::of_open_error(&error)), None))
            }
            Err(_) => {
                let slow = "rejected: the handshake took longer than";
                seldom.warn(format_args!("{slow} {within:?}"));
                Err((ExitCode::from(exit::UNAVAILABLE), Some(Rejection::Timeout)))
            }
        }
    }
}

/// Admits a client, and takes a slot at the agent that it asks for.
///
/// # Errors
/// The client's link, and the error it gets.
#[expect(clippy::result_large_err, reason = "once for each client")]
fn admit(client: Link, station: &Station) -> Result<Admitted<'_>, (Link, Reason)> {
    let (client, stay) = station.door.receive(client)?;
    match choose(&client, station) {
        Ok((agent, seat)) => Ok(Admitted {
            client,
            _stay: stay,
            agent,
            _seat: seat,
        }),
        Err(reason) => Err((client, reason)),
    }
}

/// The agent that a client asks for, and a slot there.
fn choose<'s>(client: &Link, station: &'s Station) -> Result<(&'s Arc<Agent>, Seat), Reason> {
    let wanted_agent = client.peer.wanted_agent.as_deref();
    let Some(agent) = station.roster.find(wanted_agent) else {
        // The names of agents are not disclosed.
        let message = match wanted_agent {
            Some(_) => "there is no such agent",
            None => "an agent has to be named: /agents/NAME/acp in the address",
        };
        return Err(Reason::new(reply::POLICY_DENIED, message));
    };
    let name = agent.called();
    if let Some(who) = &client.peer.principal
        && !who.may_use(name)
    {
        let message = format!("the {who} may not use this agent");
        return Err(Reason::new(reply::POLICY_DENIED, message));
    }
    let limit = agent.ground.limits.connections;
    let seat = agent.seats.take(limit);
    seat.map(|seat| (agent, seat)).ok_or_else(|| full(limit))
}

fn full(limit: usize) -> Reason {
    let message = format!("{limit} clients are connected already");
    Reason::new(reply::OVERLOADED, message).retryable()
}

/// Whether the end of a client's link may be a broken connection. The end of a byte stream is
/// deliberate, and the client may still be reading.
fn can_return(client: &Link) -> bool {
    client.peer.kind == PeerKind::Remote && !client.peer.half_close
}
