//! elephant.ai's routes: `POST …/rpc?client_id=` and `GET …/sse?client_id=`.
//!
//! A client names itself, and has one stream that carries everything. As on elephant.ai's own
//! server, a second stream takes over from the first, answers are met with 204, and a message
//! without `"jsonrpc": "2.0"` is refused. Unlike there, messages wait while no stream is open. An
//! id is free again once its answer has left on the stream; until then the same request is a
//! repeat.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};

use super::answer::{self, Answer};
use super::connection::Connection;
use super::events::EventStream;
use super::inbound::Accepted;
use super::post::{check_type, parse};
use super::refusal::Refusal;
use super::service::AcpService;
use super::streams::Opening;
use crate::jsonrpc::{Frame, Kind, member_text};
use crate::transport::http::port::body;
use crate::transport::http::port::caller::AuthenticatedClient;

/// Longest name of a client, in bytes.
const MAX_CLIENT_ID: usize = 256;

/// One of the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Rpc,
    Sse,
}

impl Route {
    /// The route of the rest of a path, after the endpoint's path.
    pub(super) fn of(rest: &str) -> Option<Self> {
        match rest {
            "/rpc" => Some(Self::Rpc),
            "/sse" => Some(Self::Sse),
            _ => None,
        }
    }
}

/// Answers a request to one of the routes.
pub(super) async fn answer(
    service: &Arc<AcpService>,
    route: Route,
    request: Request<Incoming>,
    sender: &AuthenticatedClient,
) -> Result<Answer, Refusal> {
    let client = client_id(request.uri().query().unwrap_or_default());
    match (route, request.method()) {
        (Route::Rpc, &Method::POST) => rpc(service, client, request, sender).await,
        (Route::Sse, &Method::GET) => sse(service, client, sender).await,
        (Route::Rpc, _) => Err(Refusal::method("POST")),
        (Route::Sse, _) => Err(Refusal::method("GET")),
    }
}

async fn rpc(
    service: &Arc<AcpService>,
    client: Option<String>,
    request: Request<Incoming>,
    sender: &AuthenticatedClient,
) -> Result<Answer, Refusal> {
    let client = client.ok_or_else(no_client_id)?;
    check_type(request.headers())?;
    let (body, _share) = body::read(
        request.into_body(),
        &service.port.bodies,
        &service.port.limits,
    )
    .await?;
    let (frame, envelope) = parse(Frame::new(body), service)?;
    if member_text(frame.as_bytes(), "jsonrpc").as_deref() != Some("2.0") {
        return Err(Refusal::bad_request("\"jsonrpc\" must be \"2.0\""));
    }
    let connection = connection_of(service, &client, sender).await?;
    let _serving = connection.begin_request();
    let status = match envelope.kind {
        Kind::Request | Kind::Notification => StatusCode::ACCEPTED,
        Kind::Result | Kind::Error => StatusCode::NO_CONTENT,
    };
    Ok(
        match connection
            .accept(frame, &envelope, None, None, None)
            .await?
        {
            Accepted::New(release) => answer::accepted(status, release),
            Accepted::Repeated => answer::empty(status),
        },
    )
}

async fn sse(
    service: &Arc<AcpService>,
    client: Option<String>,
    sender: &AuthenticatedClient,
) -> Result<Answer, Refusal> {
    let client = client.ok_or_else(no_client_id)?;
    let connection = connection_of(service, &client, sender).await?;
    let lease = connection.open(None, Opening::Takeover);
    let lease = lease.ok_or_else(Refusal::unknown_connection)??;
    Ok(answer::events(EventStream::new(connection, lease)))
}

/// The connection of a client, which its first request opens.
async fn connection_of(
    service: &Arc<AcpService>,
    client: &str,
    sender: &AuthenticatedClient,
) -> Result<Arc<Connection>, Refusal> {
    let (connection, new) =
        service
            .connections
            .open_elephant(client, &sender.principal, &service.port.limits);
    if new {
        service.announce(&connection, sender).await?;
    }
    Ok(connection)
}

fn client_id(query: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == "client_id")?;
    (!value.is_empty() && value.len() <= MAX_CLIENT_ID).then(|| value.to_owned())
}

fn no_client_id() -> Refusal {
    Refusal::bad_request("client_id is missing from the query, or is longer than 256 bytes")
}
