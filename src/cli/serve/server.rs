//! Serves clients: each gets a connection slot, the agent it asks for, and its conversation; or an
//! error that says why not. `listening` accepts them.

use std::future::{Future as _, poll_fn};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::agent_pool::{Agent, ConnectionLimit, ConnectionSlot, ListenerState};
use super::part::Role;
use super::terminal::Visit;
use crate::cli::admin::PendingMetrics;
use crate::cli::admission::Permit;
use crate::cli::common::RelayContext;
use crate::cli::conversation::{self, reject, run_conversation};
use crate::cli::exit;
use crate::cli::policy;
use crate::cli::rate_limit::LimitedWarning;
use auth::RejectReason;
use jsonrpc::Limits;
use jsonrpc::reply::{self, Reason};
use observe::Observers;
use observe::metrics::{Metrics, Transport};
use proxy::StopSignals;
use transport::{Endpoint, IncomingLink, Link, PeerKind};

/// Most clients that are sent an error at a time. More are closed without one.
const MAX_REJECTING: usize = 64;

/// The state that all clients share.
pub(super) struct Server {
    pub(super) stop: StopSignals,
    pub(super) conversations: TaskTracker,
    warnings: Warnings,
    clients: ConnectionLimit,
    rejecting: Semaphore,
    /// Counts clients, if metrics are collected.
    metrics: Option<Arc<Metrics>>,
    role: Role,
    count: AtomicU64,
}

/// Rate-limited warnings about what any peer can cause.
#[derive(Default)]
struct Warnings {
    accept: LimitedWarning,
    limit: LimitedWarning,
    handshake: LimitedWarning,
}

/// An admitted client and its agent, with what counts it at both until it is dropped.
type Admitted<'s> = (Link, &'s Arc<Agent>, (Permit, ConnectionSlot));

impl Server {
    /// A server without clients, which `clients` counts.
    pub(super) fn new(
        stop: StopSignals,
        metrics: Option<Arc<Metrics>>,
        clients: ConnectionLimit,
        role: Role,
    ) -> Self {
        Self {
            stop,
            conversations: TaskTracker::new(),
            warnings: Warnings::default(),
            clients,
            role,
            rejecting: Semaphore::new(MAX_REJECTING),
            metrics,
            count: AtomicU64::new(0),
        }
    }

    /// The next client number, for the log.
    pub(super) fn next_number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits until no client was connected, and no conversation kept for one, for `time`.
    pub(super) async fn idle_for(&self, time: Duration) {
        // Closed, it reports when it is empty; conversations may begin all the same.
        self.conversations.close();
        loop {
            self.conversations.wait().await;
            let before = self.count.load(Ordering::Relaxed);
            tokio::time::sleep(time).await;
            let after = self.count.load(Ordering::Relaxed);
            if self.conversations.is_empty() && before == after {
                return;
            }
        }
    }

    /// Finishes a client's handshake and serves its conversation. `transport` is the listener's.
    pub(super) async fn handle(
        &self,
        arrival: IncomingLink,
        listener: &ListenerState,
        transport: Transport,
    ) -> ExitCode {
        let limits = &listener.setup.limits;
        let unavailable = ExitCode::from(exit::UNAVAILABLE);
        let slot = self.clients.acquire(limits.connections);
        let refusal = if self.stop.requested.is_cancelled() {
            Some(conversation::NoAgent::Stopped.reason(false))
        } else if slot.is_none() {
            let reason = limit_reached(limits.connections);
            let message = &reason.message;
            let warning = &self.warnings.limit;
            warning.warn(format_args!("refused: {message} (--limit connections=N)"));
            Some(reason)
        } else {
            None
        };
        // A client is counted once: one that fails its handshake or credentials is counted for that.
        let why = refusal.as_ref().map(RejectReason::of);
        let turn = refusal.as_ref().map(|_| self.rejecting.try_acquire());
        if let (Some(why), Some(Err(_))) = (why, &turn) {
            self.count_rejection(transport, why);
            return unavailable;
        }
        let client = match self.finish_handshake(arrival, limits).await {
            Ok(Some(client)) => client,
            Ok(None) => return ExitCode::SUCCESS,
            Err((code, failed)) => {
                if let Some(failed) = failed {
                    self.count_rejection(transport, why.unwrap_or(failed));
                }
                return code;
            }
        };
        if client.peer.kind == PeerKind::Carrier {
            if refusal.is_none() {
                // The link outlives this relay: another one passes it on.
                let forward = self.role.forward(client, listener);
                self.stop.requested.run_until_cancelled(forward).await;
            }
            return ExitCode::SUCCESS;
        }
        let admitted = match refusal {
            Some(reason) => Err((client, reason)),
            None => admit(client, listener),
        };
        let (client, agent, _counted) = match admitted {
            Ok(admitted) => admitted,
            Err((client, reason)) => {
                self.count_rejection(transport, RejectReason::of(&reason));
                reject(client, &reason, limits, &self.stop).await;
                return unavailable;
            }
        };
        let _visit = Visit::begin(&client.peer, agent);
        match self.reattach(client, agent, listener).await {
            Some(client) => {
                self.run_conversation(client, agent, listener, transport)
                    .await
            }
            None => ExitCode::SUCCESS,
        }
    }

    /// Runs the conversation of a client and its agent.
    async fn run_conversation(
        &self,
        mut client: Link,
        agent: &Agent,
        listener: &ListenerState,
        transport: Transport,
    ) -> ExitCode {
        let own = listener.dialect.as_ref().map(|dialect| {
            let context = &agent.context;
            let dialects = context.dialects.over(Some(dialect), None, None);
            Box::new(RelayContext {
                dialects: dialects.expect("the dialect was found when the plan was made"),
                ..context.clone()
            })
        });
        let context = own.as_deref().unwrap_or(&agent.context);
        let metrics = self.metrics.as_ref().map(|metrics| {
            PendingMetrics::new(metrics, transport, agent.display_name(), &agent.endpoint)
        });
        // Both are boxed, so that neither's memory is kept for the length of the other.
        let setup = self.role.setup_for(&client.peer, agent);
        let setup = setup.as_ref().unwrap_or(&context.agent);
        let reached = {
            let (to, restarts) = (&agent.endpoint, context.restarts);
            let reached = conversation::connect_agent(to, setup, restarts, &self.stop);
            let mut reached = Box::pin(reached);
            // Meanwhile the client gets signs of life.
            let mut is_lost = false;
            let reached = poll_fn(|cx| {
                is_lost = is_lost || client.rx.poll_lost(cx).is_ready();
                reached.as_mut().poll(cx)
            });
            reached.await
        };
        match reached {
            Ok(link) => {
                let client = self.role.own(client, agent, setup);
                let policy = agent
                    .checks_folder_of(&client.peer)
                    .then(policy::for_served);
                let observers = Observers::default();
                let is_parent = client.peer.kind == PeerKind::Parent;
                let run = run_conversation(client, link, policy, context, metrics, observers);
                let end = Box::pin(run).await;
                let (stop, strict) = (&context.stop, context.is_strict());
                exit::of_end(&end, stop, strict, is_parent.then_some(&agent.endpoint))
            }
            Err(why) => {
                tracing::error!(agent = agent.part.name, "no agent: {why}");
                if let Some(metrics) = metrics {
                    metrics.fail();
                }
                let limits = &listener.setup.limits;
                reject(client, &why.reason(false), limits, &self.stop).await;
                ExitCode::from(why.code())
            }
        }
    }

    /// Reattaches a client to its detached conversation; `None` if it had one.
    async fn reattach(
        &self,
        client: Link,
        agent: &Agent,
        listener: &ListenerState,
    ) -> Option<Link> {
        let Some(store) = agent.detached.as_ref().filter(|_| can_reconnect(&client)) else {
            return Some(client);
        };
        tokio::select! {
            new = store.attach(client) => new.map(|client| listener.admission.watch(client)),
            () = self.stop.requested.cancelled() => None,
        }
    }

    /// Counts and logs a client that a listener could not accept.
    pub(super) fn accept_failed(&self, transport: Transport, at: &Endpoint, error: &io::Error) {
        if let Some(metrics) = &self.metrics {
            metrics.accept_failed(transport);
        }
        let warning = &self.warnings.accept;
        warning.warn(format_args!("cannot accept on {at}: {error}"));
    }

    fn count_rejection(&self, transport: Transport, why: RejectReason) {
        if let Some(metrics) = &self.metrics {
            metrics.rejected(transport, why);
        }
    }

    /// The client, unless it has resumed a link. Why it fails is to be counted, if it is not counted
    /// where it was rejected.
    async fn finish_handshake(
        &self,
        arrival: IncomingLink,
        limits: &Limits,
    ) -> Result<Option<Link>, (ExitCode, Option<RejectReason>)> {
        let within = limits.handshake;
        let warning = &self.warnings.handshake;
        // A client that connects while listeners stay open to drain gets the reason.
        let stop = match self.stop.requested.is_cancelled() {
            true => &self.stop.forced,
            false => &self.stop.requested,
        };
        let finished = tokio::select! {
            finished = tokio::time::timeout(within, arrival.finish) => finished,
            () = stop.cancelled() => {
                return Err((ExitCode::from(exit::STOPPED), Some(RejectReason::Draining)));
            }
        };
        match finished {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => {
                warning.warn(format_args!("rejected: {error}"));
                Err((ExitCode::from(exit::of_open_error(&error)), None))
            }
            Err(_) => {
                let slow = "rejected: the handshake took longer than";
                warning.warn(format_args!("{slow} {within:?}"));
                let unavailable = ExitCode::from(exit::UNAVAILABLE);
                Err((unavailable, Some(RejectReason::Timeout)))
            }
        }
    }
}

/// Admits a client, and takes a slot at the agent that it asks for.
///
/// # Errors
/// The client's link, and the error it gets.
#[expect(clippy::result_large_err, reason = "once for each client")]
fn admit(client: Link, listener: &ListenerState) -> Result<Admitted<'_>, (Link, Reason)> {
    let (client, permit) = listener.admission.admit(client)?;
    match find_agent(&client, listener) {
        Ok((agent, slot)) => Ok((client, agent, (permit, slot))),
        Err(reason) => Err((client, reason)),
    }
}

/// The agent that a client asks for, and a slot there.
pub(super) fn find_agent<'s>(
    client: &Link,
    listener: &'s ListenerState,
) -> Result<(&'s Arc<Agent>, ConnectionSlot), Reason> {
    let wanted_agent = client.peer.wanted_agent.as_deref();
    let Some(agent) = listener.agents.find(wanted_agent) else {
        // The names of agents are not disclosed.
        let message = match wanted_agent {
            Some(_) => "there is no such agent",
            None => "an agent has to be named: /agents/NAME/acp in the address",
        };
        return Err(Reason::new(reply::POLICY_DENIED, message));
    };
    let name = agent.display_name();
    if let Some(principal) = &client.peer.principal
        && !principal.may_use(name)
    {
        let message = format!("the {principal} may not use this agent");
        return Err(Reason::new(reply::POLICY_DENIED, message));
    }
    let limit = agent.context.limits.connections;
    let slot = agent.clients.acquire(limit);
    slot.map(|slot| (agent, slot))
        .ok_or_else(|| limit_reached(limit))
}

fn limit_reached(limit: usize) -> Reason {
    let message = format!("{limit} clients are connected already");
    Reason::new(reply::OVERLOADED, message).retryable()
}

/// Whether the end of a client's link may be a broken connection. The end of a byte stream is
/// deliberate, and the client may still be reading, unless the transport knows that it is gone.
fn can_reconnect(client: &Link) -> bool {
    let tells_loss = !client.peer.half_close || client.rx.tells_loss();
    client.peer.kind == PeerKind::Remote && tells_loss
}
