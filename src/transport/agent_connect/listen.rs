//! Begins to serve Agent Connect at a port: the service that answers requests, the hub behind it,
//! and the lines to the agents.
//!
//! Not here: the port (see `http::port`), and what is answered (see `routes`).

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;

use super::agents::{Agents, Ground};
use super::answer::{Answer, Events};
use super::hub::{Hub, now};
use super::routes::{self, Service};
use super::store::Store;
use super::webhook::Postman;
use crate::transport::http::port::caller::Caller;
use crate::transport::http::port::{Port, Served, bind};
use crate::transport::{Endpoint, Listener, OpenError, OpenErrorKind, Setup};

/// Binds an endpoint, and serves Agent Connect there.
pub(super) async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let service = serve(&bound.port, &bound.port.at.path)?;
    Ok(bound.serve(service))
}

/// Serves Agent Connect below a path of a port, and returns what does it.
pub(in crate::transport) fn serve(port: &Arc<Port>, path: &str) -> Result<Arc<Service>, OpenError> {
    let service = &port.setup.agent_connect;
    let path = path.trim_end_matches('/').to_owned();
    let scheme = if port.at.tls { "https" } else { "http" };
    let base = format!("{scheme}://{}{path}", port.at.authority());
    let (store, orphans) = Store::open(service.store.as_deref(), now()).map_err(|what| {
        let file = service
            .store
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string());
        let what = format!("the store {file} cannot be used: {what}");
        OpenError::new(OpenErrorKind::CannotCreate, &port.at, what)
            .with_remedy("Name another file with --store")
    })?;
    let postman = Postman::new(service.callbacks.clone());
    for (run, webhook) in orphans {
        postman.send(&webhook, &run.shown());
    }
    let ground = Ground {
        base: base.clone(),
        unasked: service.unasked,
        limits: port.limits.clone(),
        arrivals: port.arrivals.clone(),
        closing: port.closing.clone(),
    };
    let agents = Agents::new(ground, &service.agents);
    if let [only] = &*agents.all() {
        // It introduces itself before anybody asks for it; one of several when it is asked for.
        let only = only.clone();
        tokio::spawn(async move {
            if let Err(fault) = only.agent().await {
                tracing::warn!("Agent Connect is served without an agent: {}", fault.what);
            }
        });
    }
    let hub = Hub::new(agents, store, postman, port.limits.clone());
    Ok(Arc::new(Service {
        port: port.clone(),
        hub: Arc::new(hub),
        path,
        base,
    }))
}

impl Served for Service {
    type Telling = Events;

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> impl Future<Output = Result<Answer, Infallible>> + Send + 'static {
        routes::answer(self, request, caller)
    }

    /// An agent that is not served any more is let go when its last run is over.
    fn renew(&self, setup: &Setup) {
        for line in self.hub.agents.renew(&setup.agent_connect.agents) {
            let hub = self.hub.clone();
            tokio::spawn(async move {
                hub.quiet(&line).await;
                line.end();
            });
        }
    }

    /// Once nobody accepts any more the lines end with the last run.
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
