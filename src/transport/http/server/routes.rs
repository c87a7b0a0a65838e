//! Routes a request by method and path.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::{Method, Request, StatusCode, Version};
use tokio::task::yield_now;

use super::answer::{self, Answer};
use super::connection::Departure;
use super::get::get;
use super::post::{post, single};
use super::refusal::{METHODS, Refusal};
use super::service::AcpService;
use super::turn::Turn;
use super::{elephant, upgrade};
use crate::transport::http::names;
use crate::transport::http::port::caller::{AuthenticatedClient, Caller};
use crate::transport::http::port::handle;
use crate::transport::http::port::origin_check::wants_upgrade;

/// Requests of one socket after which others have a turn.
const MAX_IN_A_ROW: u32 = 8;

/// Answers one request of a client.
pub(super) fn answer(
    service: Arc<AcpService>,
    request: Request<Incoming>,
    caller: Arc<Caller>,
) -> impl Future<Output = Result<Answer, Infallible>> + Send {
    // hyper calls this in the order of the heads, and polls each response in a task of its own.
    let turn = turn(&service, &request);
    serve(service, request, turn, caller)
}

/// The turn of a message that belongs to a connection.
fn turn(service: &AcpService, request: &Request<Incoming>) -> Option<Turn> {
    if request.method() != Method::POST || !service.is_endpoint(request.uri().path()) {
        return None;
    }
    let id = request.headers().get(names::CONNECTION)?.to_str().ok()?;
    service.connections.find(id).map(Turn::after_all)
}

async fn serve(
    service: Arc<AcpService>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    caller: Arc<Caller>,
) -> Result<Answer, Infallible> {
    if request.version() <= Version::HTTP_11
        && caller.next_request() % MAX_IN_A_ROW == MAX_IN_A_ROW - 1
    {
        // hyper answers all requests of one socket that are there already, while the sockets of
        // other clients wait. Checking those takes a system call.
        yield_now().await;
    }
    let (port, methods) = (&service.port, METHODS);
    let answered = handle(
        port,
        request,
        &caller,
        methods,
        Refusal::into_answer,
        |request, client| route(&service, request, turn, client),
    );
    Ok(answered.await)
}

async fn route(
    service: &Arc<AcpService>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    mut client: AuthenticatedClient,
) -> Result<Answer, Refusal> {
    let path = request.uri().path();
    let route = path.strip_prefix(&*service.port.at.path);
    let route = route.filter(|_| service.has_elephant());
    let route = route.and_then(elephant::Route::of);
    let is_served = service.has_http() || service.only_websockets();
    let rules = service.port.rules();
    let agent = match route {
        Some(_) => rules.requested_agent(&service.port.at.path, &service.port.at.path),
        None => rules
            .requested_agent(&service.port.at.path, path)
            .filter(|_| is_served),
    };
    let Some(agent) = agent else {
        let why = format!("only {} served here", service.served_paths());
        return Err(Refusal::fatal(StatusCode::NOT_FOUND, why));
    };
    if !client.principal.may_use(agent.name()) {
        let why = format!("the {} may not use this agent", client.principal);
        return Err(Refusal::fatal(StatusCode::FORBIDDEN, why));
    }
    client.wanted_agent = agent.wanted_agent();
    let client = &client;
    if let Some(route) = route {
        return elephant::answer(service, route, request, client).await;
    }
    let protocol = protocol(&request);
    if protocol == Protocol::WebSocket || service.only_websockets() {
        return upgrade::upgrade(service, request, client);
    }
    if protocol == Protocol::Other && request.method() == Method::GET {
        let why = "this endpoint upgrades to WebSocket and to nothing else";
        return Err(Refusal::upgrade(why));
    }
    match *request.method() {
        Method::POST => post(service, request, turn, client).await,
        Method::GET => get(service, &request, client),
        Method::DELETE => delete(service, &request, client),
        _ => Err(Refusal::method(METHODS)),
    }
}

/// The protocol that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// HTTP, or the obsolete upgrade to HTTP/2.
    Http,
    WebSocket,
    Other,
}

fn protocol<B>(request: &Request<B>) -> Protocol {
    let lists = |protocol| wants_upgrade(request.headers(), protocol);
    if lists(b"websocket") {
        Protocol::WebSocket
    } else if lists(b"h2c") || !request.headers().contains_key(UPGRADE) {
        Protocol::Http
    } else {
        Protocol::Other
    }
}

/// Ends a connection.
fn delete(
    service: &AcpService,
    request: &Request<Incoming>,
    client: &AuthenticatedClient,
) -> Result<Answer, Refusal> {
    let id = single(request.headers(), &names::CONNECTION)?;
    let id = id.ok_or_else(|| Refusal::bad_request("Acp-Connection-Id is missing"))?;
    let connection = service
        .connections
        .get(id, &client.principal)
        .ok_or_else(Refusal::unknown_connection)?;
    connection.depart(Departure::Closed);
    service.connections.remove(&connection);
    Ok(answer::empty(StatusCode::ACCEPTED))
}
