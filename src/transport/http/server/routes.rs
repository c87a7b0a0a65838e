//! The routes of ACP at a port, and beside them the service of a module above this one where one is
//! configured; a task applies the time limits of connections.
//!
//! # Why
//!
//! **ACP's own paths go first.** Agent Connect may be served below `/`, and has `/agents/…` as
//! well; none of its paths ends as ACP's do.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any, get, post};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tower_service::Service as _;

use super::elephant;
use super::events::open_stream;
use super::post::{Turn, receive};
use super::registry::{self, registry};
use super::service::{AGENTS, AcpService};
use super::upgrade::upgrade;
use crate::http::headers::{CONNECTION_ID, wants_upgrade};
use crate::http::port::caller::{AuthenticatedClient, Caller};
use crate::http::port::refusal::Refusal;
use crate::http::port::{HttpService, ServeBeside, bind, handle};
use crate::{BoxFuture, Endpoint, HttpProtocol, Listener, OpenError, Setup};

/// The methods of the official endpoint.
const METHODS: &str = "GET, POST, DELETE";

/// Answers the ACP requests of a port.
pub(super) struct AcpHandler {
    service: Arc<AcpService>,
    routes: Router,
    /// The routes for requests that ask for a WebSocket, whatever their method.
    websockets: Router,
}

/// Binds an HTTP endpoint and serves ACP there.
pub(crate) async fn listen(at: &Endpoint, setup: &Setup) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let service = Arc::new(AcpService {
        port: bound.port.clone(),
        connections: Arc::default(),
    });
    let beside = match setup.extensions.get::<ServeBeside>() {
        Some(beside) => beside.0(&bound.port)?,
        None => None,
    };
    tokio::spawn(expire(service.clone()));
    let main: Arc<dyn HttpService> = Arc::new(AcpHandler::new(service));
    Ok(bound.serve_with([main].into_iter().chain(beside).collect()))
}

/// Applies the time limits of connections periodically.
async fn expire(service: Arc<AcpService>) {
    let limits = &service.port.limits;
    let shortest = limits
        .http_stream_open
        .min(limits.http_write_timeout)
        .min(limits.http_grace);
    let period = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => service.connections.expire(Instant::now()),
            () = service.port.done.cancelled() => return,
        }
    }
}

impl AcpHandler {
    pub(super) fn new(service: Arc<AcpService>) -> Self {
        let refused = |_: AuthenticatedClient| async { Refusal::method(METHODS) };
        let methods = get(open_stream).post(receive).delete(close);
        let websockets = router(&service, any(upgrade));
        let routes = match service.port.at.protocol {
            HttpProtocol::WebSocket => websockets.clone(),
            _ => router(&service, methods.head(refused).fallback(refused)),
        };
        Self {
            service,
            routes,
            websockets,
        }
    }

    /// The turn of a message that belongs to a connection.
    fn turn(&self, request: &Request<Incoming>) -> Option<Turn> {
        let id = request.headers().get(CONNECTION_ID)?.to_str().ok()?;
        let is_message = request.method() == Method::POST;
        let connection = self.service.connections.find(id).filter(|_| is_message)?;
        Some(Turn::after_all(&connection))
    }

    async fn route(&self, mut request: Request<Incoming>, client: AuthenticatedClient) -> Response {
        let mut router = match wants_upgrade(request.headers(), b"websocket") {
            true => self.websockets.clone(),
            false => self.routes.clone(),
        };
        request.extensions_mut().insert(client);
        let Ok(response) = router.call(request).await;
        response
    }
}

impl HttpService for AcpHandler {
    fn serves(&self, path: &str) -> bool {
        let rules = self.service.port.rules();
        path == registry::PATH || self.service.requested_agent(&rules, path).is_some()
    }

    fn answer(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> BoxFuture<'static, Response> {
        // hyper calls this in the order of the heads, and polls each response in a task of its own.
        // A layer or a handler of the router would only be called there.
        if let Some(turn) = self.turn(&request) {
            request.extensions_mut().insert(Arc::new(turn));
        }
        Box::pin(async move {
            let route = |request, client| self.route(request, client);
            let refuse = Refusal::into_answer;
            handle(&self.service.port, request, &caller, METHODS, refuse, route).await
        })
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.service.connections.ended())
    }
}

/// A client that may use the agent at the request's path.
impl FromRequestParts<Arc<AcpService>> for AuthenticatedClient {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<AcpService>,
    ) -> Result<Self, Refusal> {
        let rules = service.port.rules();
        let agent = service.requested_agent(&rules, parts.uri.path());
        let (agent, is_named) = agent.ok_or_else(|| service.not_found())?;
        let client = parts.extensions.remove::<Self>();
        let mut client = client.expect("the port has authenticated the client");
        if !client.principal.may_use(agent) {
            let why = format!("the {} may not use this agent", client.principal);
            return Err(Refusal::fatal(StatusCode::FORBIDDEN, why));
        }
        client.wanted_agent = is_named.then(|| Arc::from(agent));
        Ok(client)
    }
}

/// The routes of a listener whose own endpoint, and those of its agents, are `endpoint`.
fn router(service: &Arc<AcpService>, endpoint: MethodRouter<Arc<AcpService>>) -> Router {
    let only = |method| move |_: AuthenticatedClient| async move { Refusal::method(method) };
    let rpc = post(elephant::rpc).fallback(only("POST"));
    let sse = get(elephant::sse).head(only("GET")).fallback(only("GET"));
    // The path is a literal, without parameters.
    let path = service.port.at.path.replace('{', "{{").replace('}', "}}");
    let router = match service.port.at.protocol {
        // Clients of elephant.ai's routes do not use the registry.
        HttpProtocol::Elephant => Router::new(),
        _ if path == registry::PATH => Router::new(),
        _ => Router::new().route(registry::PATH, get(registry)),
    };
    router
        .without_v07_checks()
        .route(&path, endpoint.clone())
        .route(&format!("{AGENTS}{{agent}}{path}"), endpoint)
        .route(&format!("{path}/rpc"), rpc)
        .route(&format!("{path}/sse"), sse)
        .fallback(|State(service): State<Arc<AcpService>>| async move { service.not_found() })
        .with_state(service.clone())
}

/// Ends a connection.
async fn close(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    fields: HeaderMap,
) -> Result<Response, Refusal> {
    let connection = service.connection(&fields, &client)?;
    let connection = connection.ok_or_else(Refusal::no_connection)?;
    connection.depart(None);
    service.connections.remove(&connection);
    Ok(StatusCode::ACCEPTED.into_response())
}
