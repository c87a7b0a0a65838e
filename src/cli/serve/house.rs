//! Where clients are welcomed: each gets a seat, the agent it asks for, and its conversation; or is
//! told why not.
//!
//! Not here: where they come from (see `reception`).

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
use crate::observe::metrics::{Metrics, Rejection, Transport};
use crate::proxy::{Received, Stop};
use crate::transport::{Arrival, Link, PeerKind};

/// Clients that are told why they are not served, at a time. Beyond it: closed without a word.
const APOLOGIES: usize = 64;

/// What all clients share.
pub(super) struct House {
    pub(super) stop: Stop,
    pub(super) conversations: TaskTracker,
    pub(super) refusals: Refusals,
    seats: Seats,
    apologies: Semaphore,
    /// Where is counted, if anybody wants to know.
    metrics: Option<Arc<Metrics>>,
    arrivals: AtomicU64,
}

/// What strangers can cause, and what is said of it.
#[derive(Default)]
pub(super) struct Refusals {
    pub(super) no_arrival: Seldom,
    no_seat: Seldom,
    no_handshake: Seldom,
}

/// A client that was let in, and the agent it asks for; both count it for as long as it is here.
struct Admitted<'s> {
    client: Link,
    _stay: Stay,
    agent: &'s Arc<Agent>,
    _seat: Seat,
}

impl House {
    pub(super) fn new(stop: Stop, metrics: Option<Arc<Metrics>>) -> Self {
        Self {
            stop,
            conversations: TaskTracker::new(),
            refusals: Refusals::default(),
            seats: Seats::default(),
            apologies: Semaphore::new(APOLOGIES),
            metrics,
            arrivals: AtomicU64::new(0),
        }
    }

    /// The number of a client that has just come, for the log.
    pub(super) fn number(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Finishes a client's handshake and carries its conversation. `door` is how it has come.
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

    /// Has a client and its agent talk until they are done.
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
            .metrics
            .as_ref()
            .map(|metrics| Account::new(metrics, door, agent.called(), &agent.endpoint));
        match conversation::reach(&agent.endpoint, &ground.agent, &self.stop).await {
            Ok(link) => {
                // In a box, so that what was needed to come this far is not kept for as long as the
                // conversation lasts.
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

    /// Meets a client that may have come back for its agent; `None` when it has found it.
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

    /// Tells a client why it is not served, unless that many are being told already. It is counted
    /// once: one that is not let in either way was counted for that.
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

    /// A listener could not take a client.
    pub(super) fn unaccepted(&self, door: Transport) {
        if let Some(metrics) = &self.metrics {
            metrics.accept_failed(door);
        }
    }

    fn rejected(&self, door: Transport, why: Rejection) {
        if let Some(metrics) = &self.metrics {
            metrics.rejected(door, why);
        }
    }

    async fn shake_hands(
        &self,
        arrival: Arrival,
        limits: &Limits,
    ) -> Result<Link, (ExitCode, Option<Rejection>)> {
        let within = limits.handshake;
        let seldom = &self.refusals.no_handshake;
        // One that comes while listeners stay open for a while is to hear why it is refused.
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
                seldom.warn(format_args!("turned away: {error}"));
                // Whoever turned it away has counted it already.
                Err((ExitCode::from(exit::of_open_error(&error)), None))
            }
            Err(_) => {
                let slow = "turned away: the handshake took longer than";
                seldom.warn(format_args!("{slow} {within:?}"));
                Err((ExitCode::from(exit::UNAVAILABLE), Some(Rejection::Timeout)))
            }
        }
    }
}

/// Lets a client in, and finds it a seat at the agent that it asks for.
///
/// # Errors
/// What it is told, and its link.
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

/// The agent that a client asks for, and a seat there.
fn choose<'s>(client: &Link, station: &'s Station) -> Result<(&'s Arc<Agent>, Seat), Reason> {
    let wanted_agent = client.peer.wanted_agent.as_deref();
    let Some(agent) = station.roster.find(wanted_agent) else {
        // Strangers are not told which there are.
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
        let message = format!("the {who} is for other agents");
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

/// Whether the end of a client's link may be a broken connection. A byte stream that ends says that
/// the client wants no more, and that it may still be listening.
fn can_return(client: &Link) -> bool {
    client.peer.kind == PeerKind::Remote && !client.peer.half_close
}
