//! Starts the Agent Connect server of a port: the service, the hub, and the connections to the
//! agents.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::header::ALLOW;
use hyper::{HeaderMap, Request, StatusCode, Uri};
use tokio::sync::Notify;
use tower_service::Service as _;

use super::agents::{Agents, Requester, only};
use super::call::Received;
use super::connection::AgentContext;
use super::hub::Hub;
use super::routes::router;
use super::run::now;
use crate::AgentConnectConfig;
use crate::api::error::ApiError;
use crate::store::RunStore;
use crate::webhook::WebhookSender;
use auth::RejectReason;
use panics::SharedMutex;
use transport::http::headers::is_type;
use transport::http::port::body;
use transport::http::port::caller::{AuthenticatedClient, Caller};
use transport::http::port::refusal::{Refusal, Why};
use transport::http::port::{HttpService, Port, StartedService, bind, handle};
use transport::{BoxFuture, Endpoint, Listener, OpenError, OpenErrorKind, Setup};

/// The methods that are served.
const METHODS: &str = "GET, POST, PATCH, DELETE";

/// The Agent Connect service of a port.
struct RestService {
    hub: Arc<Hub>,
    router: Router,
}

/// Binds an endpoint and serves Agent Connect on it.
pub(crate) async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let config = AgentConnectConfig::of(setup);
    let service = serve(&bound.port, &bound.port.at.path, &config)?;
    Ok(bound.serve_with(vec![service]))
}

/// Serves Agent Connect beside ACP on a port, if its settings say so.
pub(crate) fn beside(port: &Arc<Port>) -> StartedService {
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
    let opened = RunStore::open(service.store.as_deref(), &now(), port.limits.clone());
    let (store, orphans) = opened.map_err(|what| {
        let file = service
            .store
            .as_deref()
            .map(|path| path.display().to_string());
        let file = file.unwrap_or_default();
        let what = format!("the store {file} cannot be used: {what}");
        OpenError::new(OpenErrorKind::CannotCreate, &port.at, what)
            .with_remedy("Name another file with --store")
    })?;
    let webhooks = WebhookSender::new(service.callbacks.clone());
    for (owner, run, webhook) in orphans {
        webhooks.send(&owner, &webhook, &run);
    }
    let context = AgentContext {
        port: port.clone(),
        base: base.clone(),
        default_permission: service.default_permission,
    };
    let agents = Agents::new(context, &service.agents);
    if let Some(only) = only(&agents.all()) {
        // A single agent is initialised at once; one of several when a client needs it.
        tokio::spawn(async move {
            if let Err(fault) = only.connect().await {
                tracing::warn!("Agent Connect has no agent at present: {}", fault.message);
            }
        });
    }
    let cwd = std::env::current_dir().ok();
    let cwd = cwd.and_then(|path| path.into_os_string().into_string().ok());
    let hub = Arc::new(Hub {
        port: port.clone(),
        path,
        base,
        agents,
        store,
        webhooks,
        cwd: cwd.unwrap_or_else(|| "/".to_owned()),
        state: SharedMutex::default(),
        ended: Notify::new(),
    });
    let router = router(hub.clone());
    Ok(Arc::new(RestService { hub, router }))
}

impl HttpService for RestService {
    fn serves(&self, path: &str) -> bool {
        self.path_below(path).is_some()
    }

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> BoxFuture<'static, Response> {
        Box::pin(async move {
            let answer = async |request, client| {
                let routed = self.route(request, client).await;
                routed.unwrap_or_else(Refusal::into_response)
            };
            handle(&self.hub.port, request, &caller, METHODS, refuse, answer).await
        })
    }

    /// Connections to agents that are no longer served end with their last run.
    fn renew(&self, setup: &Setup) {
        let agents = AgentConnectConfig::of(setup).agents;
        for conn in self.hub.agents.update(&agents) {
            let hub = self.hub.clone();
            tokio::spawn(async move {
                hub.wait_ended(|live| Arc::ptr_eq(&live.conn, &conn)).await;
                conn.end();
            });
        }
    }

    /// After the listener has stopped, the agent connections end with the last run.
    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.hub.wait_ended(|_| true).await;
            for conn in self.hub.agents.all() {
                conn.end();
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
        let (port, principal) = (&self.hub.port, client.principal);
        if self.hub.agents.usable_by(&principal).is_empty() {
            let why = format!("the {principal} is for other agents");
            return Err(Refusal::fatal(StatusCode::FORBIDDEN, why));
        }
        let requester = Arc::new(Requester {
            owner: principal.to_string().into(),
            principal,
            default_agent: port.rules().front.default_agent.clone(),
        });
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
        head.uri = self.address_below(&head.uri);
        head.extensions.insert(Received { requester, body });
        let request = Request::from_parts(head, Body::empty());
        let Ok(answer) = self.router.clone().call(request).await;
        match answer.status() {
            StatusCode::NOT_FOUND => port.count(RejectReason::Unknown),
            StatusCode::METHOD_NOT_ALLOWED => return Ok(not_allowed(answer.headers())),
            _ => {}
        }
        Ok(answer)
    }

    fn path_below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let below = path.strip_prefix(&self.hub.path)?;
        below.starts_with('/').then_some(below)
    }

    /// The same address below the service's path; `/`, where nothing is served, for others.
    fn address_below(&self, uri: &Uri) -> Uri {
        let path = self.path_below(uri.path()).unwrap_or_default();
        let query = uri.query().map(|query| format!("?{query}"));
        let below = format!("/{}{}", path.trim_matches('/'), query.unwrap_or_default());
        below.parse().unwrap_or_default()
    }
}

/// A refusal by the port, in the form of an error.
fn refuse(mut refusal: Refusal) -> Response {
    let fields = refusal.take_fields();
    let message = match refusal.why {
        Why::Text(text) => text,
        Why::Error(_) => "refused".into(),
    };
    let mut answer = ApiError::new(refusal.status.as_u16(), message).into_response();
    answer.headers_mut().extend(fields);
    answer
}

/// The router's refusal of a method, which has no body, in the form of an error.
fn not_allowed(fields: &HeaderMap) -> Response {
    let allowed = fields.get(ALLOW).and_then(|allowed| allowed.to_str().ok());
    let allowed = allowed.unwrap_or_default().split(',');
    let allowed: Vec<&str> = allowed.filter(|method| *method != "HEAD").collect();
    let allowed = allowed.join(", ");
    let fault = ApiError::new(405, format!("this path takes {allowed}"));
    ([(ALLOW, allowed)], fault).into_response()
}
