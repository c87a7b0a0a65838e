//! Method by path: who answers a request.
//!
//! Not here: the answers (see `post`, `stream`, `upgrade`, `elephant`).

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::{Method, Request, StatusCode, Version};
use tokio::task::yield_now;

use super::answer::{self, Answer};
use super::caller::{Caller, Guest};
use super::connection::Left;
use super::credential::identify;
use super::desk::Desk;
use super::post::{only, post};
use super::refuse::{METHODS, Refusal, Why};
use super::stream::stream;
use super::turn::Turn;
use super::{elephant, upgrade};
use crate::transport::http::names;
use crate::transport::{OpenError, OpenErrorKind};

/// Answers one request of a client.
pub(super) fn answer(
    desk: Arc<Desk>,
    request: Request<Incoming>,
    caller: Arc<Caller>,
) -> impl Future<Output = Result<Answer, Infallible>> + Send {
    // The server calls us in the order of the heads, and serves each answer in a task of its own.
    let turn = turn(&desk, &request);
    serve(desk, request, turn, caller)
}

/// The turn of a message that belongs to a connection.
fn turn(desk: &Desk, request: &Request<Incoming>) -> Option<Turn> {
    if request.method() != Method::POST || !desk.has(request.uri().path()) {
        return None;
    }
    let id = request.headers().get(names::CONNECTION)?.to_str().ok()?;
    desk.register.of_anybody(id).map(Turn::after_all)
}

async fn serve(
    desk: Arc<Desk>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    caller: Arc<Caller>,
) -> Result<Answer, Infallible> {
    let is_h1 = request.version() <= Version::HTTP_11;
    if is_h1 {
        // The server answers many requests of one socket in a row when they are there already, and
        // other clients' sockets wait for it.
        yield_now().await;
    }
    let rules = desk.rules();
    let page = match rules.doorkeeper.admit(&request) {
        Ok(page) => page,
        Err(refusal) => return Ok(refused(&desk, refusal, &caller.from, is_h1)),
    };
    // A browser asks whether it may show a token before it does.
    let mut answer = match page.preflight(&request, METHODS) {
        Some(answer) => answer.map(|()| answer::Content::Nothing),
        None => {
            let answered = match identify(&rules.gate, &request, &caller) {
                Ok(guest) => route(&desk, request, turn, guest).await,
                Err(refusal) => Err(refusal),
            };
            answered.unwrap_or_else(|refusal| refused(&desk, refusal, &caller.from, is_h1))
        }
    };
    page.show(answer.headers_mut());
    Ok(answer)
}

async fn route(
    desk: &Arc<Desk>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    mut guest: Guest,
) -> Result<Answer, Refusal> {
    let path = request.uri().path();
    let route = path.strip_prefix(&*desk.at.path);
    let route = route.filter(|_| desk.speaks_elephant());
    let route = route.and_then(elephant::Route::of);
    let speaks = desk.speaks_http() || desk.only_websockets();
    let rules = desk.rules();
    let asked = match route {
        Some(_) => rules.asked(&desk.at.path, &desk.at.path),
        None => rules.asked(&desk.at.path, path).filter(|_| speaks),
    };
    let Some(agent) = asked else {
        let why = format!("only {} served here", desk.served());
        return Err(Refusal::stranger(StatusCode::NOT_FOUND, why));
    };
    if !guest.principal.may_use(agent.name()) {
        let why = format!("the {} is for other agents", guest.principal);
        return Err(Refusal::stranger(StatusCode::FORBIDDEN, why));
    }
    guest.wish = agent.wish();
    let guest = &guest;
    if let Some(route) = route {
        return elephant::answer(desk, route, request, guest).await;
    }
    let wished = wish(&request);
    if wished == Wish::WebSocket || desk.only_websockets() {
        return upgrade::upgrade(desk, request, guest);
    }
    if wished == Wish::Other && request.method() == Method::GET {
        let why = "this endpoint upgrades to WebSocket and to nothing else";
        return Err(Refusal::upgrade(why));
    }
    match *request.method() {
        Method::POST => post(desk, request, turn, guest).await,
        Method::GET => stream(desk, &request, guest),
        Method::DELETE => delete(desk, &request, guest),
        _ => Err(Refusal::method(METHODS)),
    }
}

/// What a request wants to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// HTTP, or an HTTP/2 that nobody upgrades to any more.
    Http,
    WebSocket,
    Other,
}

/// Whether a request wants a WebSocket.
pub(super) fn upgrades<B>(request: &Request<B>) -> bool {
    wish(request) == Wish::WebSocket
}

fn wish<B>(request: &Request<B>) -> Wish {
    let lists = |token: &[u8]| {
        let fields = request.headers().get_all(UPGRADE);
        let mut tokens = fields
            .iter()
            .flat_map(|value| value.as_bytes().split(|b| *b == b','));
        tokens.any(|one| one.trim_ascii().eq_ignore_ascii_case(token))
    };
    if lists(b"websocket") {
        Wish::WebSocket
    } else if lists(b"h2c") || !request.headers().contains_key(UPGRADE) {
        Wish::Http
    } else {
        Wish::Other
    }
}

/// Ends a connection.
fn delete(desk: &Desk, request: &Request<Incoming>, guest: &Guest) -> Result<Answer, Refusal> {
    let id = only(request.headers(), &names::CONNECTION)?;
    let id = id.ok_or_else(|| Refusal::bad("Acp-Connection-Id is missing"))?;
    let connection = desk
        .register
        .get(id, &guest.principal)
        .ok_or_else(Refusal::unknown_connection)?;
    connection.leave(Left::Politely);
    desk.register.remove(&connection);
    Ok(answer::empty(StatusCode::ACCEPTED))
}

fn refused(desk: &Desk, refusal: Refusal, from: &str, is_h1: bool) -> Answer {
    let status = refusal.status;
    tracing::debug!(from, %status, why = ?refusal.why, "a request was refused");
    let stranger = refusal.hang_up;
    if stranger && let Why::Text(why) = &refusal.why {
        let kind = match status {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_MANY_REQUESTS => OpenErrorKind::Forbidden,
            _ => OpenErrorKind::Protocol,
        };
        let what = format!("refused with {status}: {why}");
        desk.turned_away(from, OpenError::new(kind, from, what));
    }
    let mut answer = refusal.into_answer();
    if !is_h1 {
        // HTTP/2 has no such headers (RFC 9113, 8.2.2).
        answer.headers_mut().remove(CONNECTION);
        answer.headers_mut().remove(UPGRADE);
    }
    answer
}
