//! Starts the Agent Connect server of a port: the service, the hub, and the connections to the
//! agents.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tower_service::Service as _;

use super::agent_connection::AgentContext;
use super::agents::AgentConnections;
use super::call::{Api, Received};
use super::hub::{Hub, now};
use super::response;
use super::routes::router;
use crate::agent_connect::AgentConnectConfig;
use crate::agent_connect::store::RunStore;
use crate::agent_connect::webhook::WebhookSender;
use crate::auth::RejectReason;
use crate::transport::http::content::is_type;
use crate::transport::http::port::body;
use crate::transport::http::port::caller::{AuthenticatedClient, Caller};
use crate::transport::http::port::refusal::Refusal;
use crate::transport::http::port::service::StartedService;
use crate::transport::http::port::{HttpService, Port, bind, handle};
use crate::transport::{BoxFuture, Endpoint, Listener, OpenError, OpenErrorKind, Setup};

/// The methods that are served.
const METHODS: &str = "GET, POST, PATCH, DELETE";

/// The Agent Connect service of a port.
struct RestService {
    api: Arc<Api>,
    router: Router,
}

/// Binds an endpoint and serves Agent Connect on it.
pub(in crate::agent_connect) async fn listen(
    at: &Endpoint,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let config = AgentConnectConfig::of(setup);
    let service = serve(&bound.port, &bound.port.at.path, &config)?;
    Ok(bound.serve_with(service))
}

/// Serves Agent Connect beside ACP on a port, if its settings say so.
pub(in crate::agent_connect) fn beside(port: &Arc<Port>) -> StartedService {
    let config = AgentConnectConfig::of(&port.setup);
    let path = config.path.clone();
    path.map(|path| -> Result<Arc<dyn HttpService>, OpenError> { Ok(serve(port, &path, &config)?) })
        .transpose()
}

/// Serves Agent Connect below a path of a port.
fn serve(
    port: &Arc<Port>,
    path: &str,
    service: &AgentConnectConfig,
) -> Result<Arc<RestService>, OpenError> {
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
        webhooks.send(&webhook, &serde_json::json!(run));
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
    let api = Arc::new(Api {
        port: port.clone(),
        hub: Arc::new(hub),
        path,
        base,
    });
    let router = router(api.clone());
    Ok(Arc::new(RestService { api, router }))
}

impl HttpService for RestService {
    fn serves(&self, path: &str) -> bool {
        self.api.serves(path)
    }

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> BoxFuture<'static, Response> {
        Box::pin(async move {
            let port = &self.api.port;
            let answer = |request, client| self.route(request, client);
            handle(port, request, &caller, METHODS, response::refusal, answer).await
        })
    }

    /// Connections to agents that are no longer served end with their last run.
    fn renew(&self, setup: &Setup) {
        let agents = AgentConnectConfig::of(setup).agents;
        for line in self.api.hub.agents.update(&agents) {
            let hub = self.api.hub.clone();
            tokio::spawn(async move {
                hub.wait_ended(|live| Arc::ptr_eq(&live.conn, &line)).await;
                line.end();
            });
        }
    }

    /// After the listener has stopped, the agent connections end with the last run.
    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.api.hub.wait_ended(|_| true).await;
            for line in self.api.hub.agents.all() {
                line.end();
            }
        })
    }
}

impl RestService {
    /// Has the router answer a request of an authenticated client.
    async fn route(
        &self,
        request: Request<Incoming>,
        client: AuthenticatedClient,
    ) -> Result<Response, Refusal> {
        let port = &self.api.port;
        let requester = Arc::new(self.api.requester(client)?);
        // Without this check a web page could post other types from another origin without a
        // preflight.
        let is_json = is_type(request.headers(), "application/json");
        let (mut head, body) = request.into_parts();
        // Its share of the memory for bodies is held until the response is complete.
        let (body, _share) = body::read(body, &port.bodies, &port.limits).await?;
        if !body.is_empty() && !is_json {
            let why = "Content-Type must be application/json";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        head.uri = self.api.address_below(&head.uri);
        head.extensions.insert(Received { requester, body });
        let request = Request::from_parts(head, Body::empty());
        let Ok(answer) = self.router.clone().call(request).await;
        if answer.status() == StatusCode::NOT_FOUND {
            port.count(RejectReason::Unknown);
        }
        Ok(response::with_allowed_methods(answer))
    }
}
