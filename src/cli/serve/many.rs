//! The parts of relays that work together on many machines: a host of agents, and a gateway to hosts.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Serve;
use super::agent_pool::{Agent, ConnectionLimit, ListenerState};
use super::part::{Alone, Part, Role};
use super::server::find_agent;
use crate::cli::agents::check_name;
use crate::cli::cluster::ClusterArgs;
use crate::cli::common::RelayContext;
use crate::cli::config::AgentPart;
use crate::cli::{endpoints, exit, limits};
use auth::{AuthMethod, Gate, Principal};
use cluster::{Gateway, Greeted, Host, Nats, TRANSPORT};
use jsonrpc::Limits;
use transport::process::Lease;
use transport::{
    BoxFuture, Endpoint, Link, LinkPlace, Links, OpenError, Peer, Setup, current_time,
};

/// A host.
struct HostPart(Arc<Host>);

/// A gateway, and the agents that it was last seen to have.
struct GatewayPart {
    gateway: Arc<Gateway>,
    agents: Mutex<watch::Receiver<BTreeSet<String>>>,
    /// What credentials are checked with, and the time between two checks.
    checks: Mutex<Option<(Gate, Duration)>>,
}

/// The part that the options say. `open` counts the clients. Errors are printed, and the exit code
/// is returned.
pub(super) async fn start(
    args: &Serve,
    is_gateway: bool,
    open: &ConnectionLimit,
) -> Result<Role, ExitCode> {
    let usage = |fault: String| exit::fail(exit::USAGE, &fault);
    let failed = |error: OpenError| exit::open_failed(&error);
    let cluster = &args.cluster;
    let limits = limits::apply(&Limits::default(), &args.common.limits);
    if is_gateway {
        let direct = Setup {
            limits,
            ..endpoints::setup()
        };
        let settings = cluster.gateway(direct).map_err(usage)?;
        let nats = cluster.nats("gateway").map_err(usage)?;
        let nats = Nats::connect(&nats).await.map_err(failed)?;
        let gateway = Gateway::start(nats, settings).await.map_err(failed)?;
        let agents = Mutex::new(gateway.agents());
        let followed = Arc::clone(&gateway);
        tokio::spawn(async move { followed.follow().await });
        return Ok(Arc::new(GatewayPart {
            gateway,
            agents,
            checks: Mutex::default(),
        }));
    }
    if *cluster == ClusterArgs::default() {
        return Ok(Arc::new(Alone));
    }
    let settings = cluster.host(&limits).map_err(usage)?;
    let nats = cluster.nats(&settings.name).map_err(usage)?;
    let nats = Nats::connect(&nats).await.map_err(failed)?;
    let host = Host::start(nats, settings, open.count());
    Ok(Arc::new(HostPart(host.await.map_err(failed)?)))
}

impl Part for HostPart {
    fn set_up(&self, context: &mut RelayContext, _: Option<&RelayContext>) {
        if let Some(links) = &context.client.links {
            links.set_place(self.0.place());
        }
    }

    fn listener(&self, mut all: ListenerState) -> Option<(Endpoint, ListenerState)> {
        let names = all.agents.all.iter();
        self.0
            .set_agents(names.map(|agent| agent.display_name().to_owned()).collect());
        all.setup.gate.set_passes(Arc::clone(&self.0) as _);
        all.setup.cluster = Some(TRANSPORT);
        all.setup.extensions.insert(Arc::clone(&self.0));
        Some((Endpoint::Cluster(self.0.id().to_owned()), all))
    }

    fn setup_for(&self, _: &Peer, agent: &Agent) -> Option<Setup> {
        let mut setup = agent.context.agent.clone();
        setup.launch.lease = Some(Lease::default());
        Some(setup)
    }

    fn own(&self, client: Link, agent: &Agent, setup: &Setup) -> Link {
        let lease = setup.launch.lease.clone().unwrap_or_default();
        let limits = &agent.context.limits;
        self.0.own(client, agent.display_name(), lease, limits)
    }

    fn announce(self: Arc<Self>) {
        tokio::spawn(async move { self.0.announce().await });
    }

    fn drain(&self) {
        self.0.drain();
    }

    fn retire(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.retire())
    }
}

impl Part for GatewayPart {
    fn agents(&self) -> Option<Result<Vec<AgentPart>, String>> {
        let names = self.agents.lock().borrow_and_update().clone();
        let names = names.into_iter().filter(|name| check_name(name).is_ok());
        let parts = names.map(|name| {
            let mut part = AgentPart::with(&name, &[])?;
            part.endpoint = Some(Endpoint::Cluster(name));
            Ok(part)
        });
        Some(parts.collect())
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        let mut agents = self.agents.lock().clone();
        Box::pin(async move {
            if agents.changed().await.is_err() {
                std::future::pending().await
            }
            // Also when those it has now cannot be served.
            *self.agents.lock() = agents;
        })
    }

    fn set_up(&self, context: &mut RelayContext, before: Option<&RelayContext>) {
        if let Some(links) = before.and_then(|before| before.agent.links.clone()) {
            context.agent.links = Some(links);
        }
        if context.client.links.is_some() {
            // Those to hosts are its own; those of clients end on hosts.
            let links = Links::default();
            links.set_place(LinkPlace::Elsewhere);
            context.client.links = Some(Arc::new(links));
        }
    }

    fn listener(&self, all: ListenerState) -> Option<(Endpoint, ListenerState)> {
        *self.checks.lock() = Some((all.setup.gate, all.setup.limits.credential_check));
        None
    }

    fn announce(self: Arc<Self>) {
        tokio::spawn(async move {
            loop {
                let Some((_, time)) = self.checks.lock().clone() else {
                    return;
                };
                sleep(time).await;
                let Some((gate, _)) = self.checks.lock().clone() else {
                    return;
                };
                let is_valid = |who: &Principal| match who.auth_method {
                    // Without files of tokens nothing is known of them.
                    AuthMethod::Token if !gate.has_source() => true,
                    _ => {
                        let is_valid = || gate.is_still_valid(who, current_time());
                        // It may be newer than what was read last.
                        is_valid() || {
                            gate.refresh();
                            is_valid()
                        }
                    }
                };
                self.gateway.check_guests(is_valid).await;
            }
        });
    }

    fn set_up_agent(&self, setup: &mut Setup) {
        setup.cluster = Some(TRANSPORT);
        setup.extensions.insert(Arc::clone(&self.gateway));
    }

    fn setup_for(&self, client: &Peer, agent: &Agent) -> Option<Setup> {
        let mut setup = agent.context.agent.clone();
        setup.extensions.insert(client.principal.clone()?);
        Some(setup)
    }

    fn forward<'p>(&'p self, carrier: Link, listener: &'p ListenerState) -> BoxFuture<'p, ()> {
        Box::pin(async move {
            let limits = &listener.setup.limits;
            let Some(mut greeted) = Greeted::read(carrier, limits).await else {
                return;
            };
            let Some(who) = greeted.client.peer.principal.clone() else {
                return;
            };
            let (agent, _slot) = match find_agent(&greeted.client, listener) {
                Ok(found) => found,
                Err(reason) => return greeted.refuse(&reason.message).await,
            };
            let mut _permit = None;
            if greeted.is_new() {
                match listener.admission.admit(greeted.client) {
                    Ok((client, permit)) => {
                        greeted.client = client;
                        _permit = Some(permit);
                    }
                    Err((client, reason)) => {
                        greeted.client = client;
                        return greeted.refuse(&reason.message).await;
                    }
                }
            } else {
                greeted.client = listener.admission.watch(greeted.client);
            }
            let name = agent.display_name();
            self.gateway.forward(greeted, &who, name, limits).await;
        })
    }
}
