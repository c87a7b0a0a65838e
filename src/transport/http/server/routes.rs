//! Serves ACP on an HTTP listener, and beside it the service of a module above this one where one is
//! configured; a task applies the time limits of connections.
//!
//! # Why
//!
//! **ACP's own paths go first.** Agent Connect may be served below `/`, and has `/agents/…` as
//! well; none of its paths ends as ACP's do.

use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Method, Request, StatusCode};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::elephant;
use super::events::open_stream;
use super::post::{Turn, receive};
use super::service::{AcpService, Route};
use super::upgrade::upgrade;
use crate::transport::http::headers::{CONNECTION_ID, wants_upgrade};
use crate::transport::http::port::caller::{AuthenticatedClient, Caller};
use crate::transport::http::port::refusal::Refusal;
use crate::transport::http::port::{HttpService, ServeBeside, bind, handle};
use crate::transport::{BoxFuture, Endpoint, HttpProtocol, Listener, OpenError, Setup};

/// The methods of the official endpoint.
const METHODS: &str = "GET, POST, DELETE";

/// Binds an HTTP endpoint and serves ACP there.
pub(in crate::transport) async fn listen(
    at: &Endpoint,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
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
    let main: Arc<dyn HttpService> = service;
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

impl HttpService for AcpService {
    fn serves(&self, path: &str) -> bool {
        self.requested(&self.port.rules(), path).is_some()
    }

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> BoxFuture<'static, Response> {
        // hyper calls this in the order of the heads, and polls each response in a task of its own.
        let turn = self.turn(&request);
        Box::pin(async move {
            let service = &self;
            let serve = |request, client| async move {
                let response = service.respond(request, client, turn).await;
                response.unwrap_or_else(Refusal::into_response)
            };
            let refuse = Refusal::into_answer;
            handle(&self.port, request, &caller, METHODS, refuse, serve).await
        })
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.connections.ended())
    }
}

impl AcpService {
    /// The turn of a message that belongs to a connection.
    fn turn(&self, request: &Request<Incoming>) -> Option<Turn> {
        let id = request.headers().get(CONNECTION_ID)?.to_str().ok()?;
        let is_message = request.method() == Method::POST;
        let connection = self.connections.find(id).filter(|_| is_message)?;
        Some(Turn::after_all(&connection))
    }

    /// Answers a request of a client that may use the agent at its path.
    async fn respond(
        self: &Arc<Self>,
        request: Request<Incoming>,
        mut client: AuthenticatedClient,
        turn: Option<Turn>,
    ) -> Result<Response, Refusal> {
        let rules = self.port.rules();
        let requested = self.requested(&rules, request.uri().path());
        let (route, agent, is_named) = requested.ok_or_else(|| self.not_found())?;
        if !client.principal.may_use(agent) {
            let why = format!("the {} may not use this agent", client.principal);
            return Err(Refusal::fatal(StatusCode::FORBIDDEN, why));
        }
        client.wanted_agent = is_named.then(|| Arc::from(agent));
        let wants_socket = self.port.at.protocol == HttpProtocol::WebSocket
            || wants_upgrade(request.headers(), b"websocket");
        match (route, request.method()) {
            (Route::Official, _) if wants_socket => upgrade(self, client, request),
            (Route::Official, &Method::GET) => open_stream(self, &client, request.headers()),
            (Route::Official, &Method::POST) => receive(self, &client, request, turn).await,
            (Route::Official, &Method::DELETE) => self.close(&client, request.headers()),
            (Route::Official, _) => Err(Refusal::method(METHODS)),
            (Route::Rpc, &Method::POST) => elephant::rpc(self, &client, request).await,
            (Route::Rpc, _) => Err(Refusal::method("POST")),
            (Route::Sse, &Method::GET) => elephant::sse(self, &client, request.uri()).await,
            (Route::Sse, _) => Err(Refusal::method("GET")),
        }
    }

    /// Ends a connection.
    fn close(&self, client: &AuthenticatedClient, fields: &HeaderMap) -> Result<Response, Refusal> {
        let connection = self.connection(fields, client)?;
        let connection = connection.ok_or_else(Refusal::no_connection)?;
        connection.depart(None);
        self.connections.remove(&connection);
        Ok(StatusCode::ACCEPTED.into_response())
    }
}
