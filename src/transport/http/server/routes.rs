//! Routes a request by method and path.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::{Method, Request, StatusCode, Version};
use tokio::task::yield_now;

use super::answer::{self, Answer};
use super::connection::Left;
use super::get::get;
use super::post::{only, post};
use super::refuse::{METHODS, Refusal};
use super::service::Service;
use super::turn::Turn;
use super::{elephant, upgrade};
use crate::transport::http::names;
use crate::transport::http::port::caller::{Caller, Guest};
use crate::transport::http::port::door::asks_for;
use crate::transport::http::port::receive;

/// Requests of one socket after which others have a turn.
const IN_A_ROW: u32 = 8;

/// Answers one request of a client.
pub(super) fn answer(
    service: Arc<Service>,
    request: Request<Incoming>,
    caller: Arc<Caller>,
) -> impl Future<Output = Result<Answer, Infallible>> + Send {
    // hyper calls this in the order of the heads, and polls each response in a task of its own.
    let turn = turn(&service, &request);
    serve(service, request, turn, caller)
}

/// The turn of a message that belongs to a connection.
fn turn(service: &Service, request: &Request<Incoming>) -> Option<Turn> {
    if request.method() != Method::POST || !service.has(request.uri().path()) {
        return None;
    }
    let id = request.headers().get(names::CONNECTION)?.to_str().ok()?;
    service.register.of_anybody(id).map(Turn::after_all)
}

async fn serve(
    service: Arc<Service>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    caller: Arc<Caller>,
) -> Result<Answer, Infallible> {
    if request.version() <= Version::HTTP_11 && caller.asks() % IN_A_ROW == IN_A_ROW - 1 {
        // hyper answers all requests of one socket that are there already, while the sockets of
        // other clients wait. Checking those takes a system call.
        yield_now().await;
    }
    let (port, methods) = (&service.port, METHODS);
    let answered = receive(
        port,
        request,
        &caller,
        methods,
        Refusal::into_answer,
        |request, guest| route(&service, request, turn, guest),
    );
    Ok(answered.await)
}

async fn route(
    service: &Arc<Service>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    mut guest: Guest,
) -> Result<Answer, Refusal> {
    let path = request.uri().path();
    let route = path.strip_prefix(&*service.port.at.path);
    let route = route.filter(|_| service.speaks_elephant());
    let route = route.and_then(elephant::Route::of);
    let speaks = service.speaks_http() || service.only_websockets();
    let rules = service.port.rules();
    let asked = match route {
        Some(_) => rules.asked(&service.port.at.path, &service.port.at.path),
        None => rules.asked(&service.port.at.path, path).filter(|_| speaks),
    };
    let Some(agent) = asked else {
        let why = format!("only {} served here", service.served());
        return Err(Refusal::stranger(StatusCode::NOT_FOUND, why));
    };
    if !guest.principal.may_use(agent.name()) {
        let why = format!("the {} may not use this agent", guest.principal);
        return Err(Refusal::stranger(StatusCode::FORBIDDEN, why));
    }
    guest.wanted_agent = agent.wanted_agent();
    let guest = &guest;
    if let Some(route) = route {
        return elephant::answer(service, route, request, guest).await;
    }
    let protocol = protocol(&request);
    if protocol == Protocol::WebSocket || service.only_websockets() {
        return upgrade::upgrade(service, request, guest);
    }
    if protocol == Protocol::Other && request.method() == Method::GET {
        let why = "this endpoint upgrades to WebSocket and to nothing else";
        return Err(Refusal::upgrade(why));
    }
    match *request.method() {
        Method::POST => post(service, request, turn, guest).await,
        Method::GET => get(service, &request, guest),
        Method::DELETE => delete(service, &request, guest),
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
    let lists = |protocol| asks_for(request.headers(), protocol);
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
    service: &Service,
    request: &Request<Incoming>,
    guest: &Guest,
) -> Result<Answer, Refusal> {
    let id = only(request.headers(), &names::CONNECTION)?;
    let id = id.ok_or_else(|| Refusal::bad("Acp-Connection-Id is missing"))?;
    let connection = service
        .register
        .get(id, &guest.principal)
        .ok_or_else(Refusal::unknown_connection)?;
    connection.leave(Left::Politely);
    service.register.remove(&connection);
    Ok(answer::empty(StatusCode::ACCEPTED))
}
