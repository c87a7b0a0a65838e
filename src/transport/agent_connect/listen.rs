//! Starts the Agent Connect server of a port: the service, the hub, and the connections to the
//! agents.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;

use super::agents::{AgentConnections, AgentContext};
use super::hub::{Hub, now};
use super::response::{EventBody, RestResponse};
use super::routes::{self, RestService};
use super::store::RunStore;
use super::webhook::WebhookSender;
use crate::transport::http::port::caller::Caller;
use crate::transport::http::port::{Handler, Port, bind};
use crate::transport::{Endpoint, Listener, OpenError, OpenErrorKind, Setup};

/// Binds an endpoint and serves Agent Connect on it.
pub(super) async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let service = serve(&bound.port, &bound.port.at.path)?;
    Ok(bound.serve(service))
}

/// Serves Agent Connect below a path of a port, and returns the service.
pub(in crate::transport) fn serve(
    port: &Arc<Port>,
    path: &str,
) -> Result<Arc<RestService>, OpenError> {
    let service = &port.setup.agent_connect;
    let path = path.trim_end_matches('/').to_owned();
    let scheme = if port.at.tls { "https" } else { "http" };
    let base = format!("{scheme}://{}{path}", port.at.authority());
    let (store, orphans) = RunStore::open(service.store.as_deref(), now()).map_err(|what| {
        let file = service
            .store
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string());
        let what = format!("the store {file} cannot be used: {what}");
        OpenError::new(OpenErrorKind::CannotCreate, &port.at, what)
            .with_remedy("Name another file with --store")
    })?;
    let webhooks = WebhookSender::new(service.callbacks.clone());
    for (run, webhook) in orphans {
        webhooks.send(&webhook, &run.to_json());
    }
    let context = AgentContext {
        base: base.clone(),
        default_permission: service.default_permission,
        limits: port.limits.clone(),
        arrivals: port.arrivals.clone(),
        closing: port.closing.clone(),
    };
    let agents = AgentConnections::new(context, &service.agents);
    if let [only] = &*agents.all() {
        // A single agent is initialised at once; one of several when a client needs it.
        let only = only.clone();
        tokio::spawn(async move {
            if let Err(fault) = only.connect().await {
                tracing::warn!("Agent Connect has no agent at present: {}", fault.message);
            }
        });
    }
    let hub = Hub::new(agents, store, webhooks, port.limits.clone());
    Ok(Arc::new(RestService {
        port: port.clone(),
        hub: Arc::new(hub),
        path,
        base,
    }))
}

impl Handler for RestService {
    type Stream = EventBody;

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> impl Future<Output = Result<RestResponse, Infallible>> + Send + 'static {
        routes::answer(self, request, caller)
    }

    /// Connections to agents that are no longer served end with their last run.
    fn renew(&self, setup: &Setup) {
        for line in self.hub.agents.update(&setup.agent_connect.agents) {
            let hub = self.hub.clone();
            tokio::spawn(async move {
                hub.wait_idle(&line).await;
                line.end();
            });
        }
    }

    /// After the listener has stopped, the agent connections end with the last run.
    async fn ended(&self) {
        loop {
            let idle = self.hub.idle.notified();
            if self.hub.is_idle() {
                break;
            }
            idle.await;
        }
        for line in self.hub.agents.all() {
            line.end();
        }
    }
}
