//! elephant.ai's routes: `POST …/rpc?client_id=` and `GET …/sse?client_id=`.
//!
//! A client names itself, and has one stream that carries everything. As on elephant.ai's own
//! server, a second stream takes over from the first, answers are met with 204, and a message
//! without `"jsonrpc": "2.0"` is refused. Unlike there, messages wait while no stream is open. An
//! id is free again once its answer has left on the stream; until then the same request is a
//! repeat.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hyper::{StatusCode, Uri};

use super::connection::Connection;
use super::events::EventStream;
use super::inbound::Posted;
use super::post::{accepted, check_type, read_message};
use super::service::AcpService;
use super::streams::{CONNECTION, Opening};
use crate::http::port::caller::AuthenticatedClient;
use crate::http::port::refusal::Refusal;
use jsonrpc::{Kind, member_text};

/// Longest name of a client, in bytes.
const MAX_CLIENT_ID: usize = 256;

/// Answers `POST …/rpc`.
pub(super) async fn rpc(
    State(service): State<Arc<AcpService>>,
    sender: AuthenticatedClient,
    uri: Uri,
    request: Request,
) -> Result<Response, Refusal> {
    check_type(request.headers())?;
    let (frame, envelope, _share) = read_message(&service, request.into_body()).await?;
    if member_text(frame.as_bytes(), "jsonrpc").as_deref() != Some("2.0") {
        return Err(Refusal::bad_request("\"jsonrpc\" must be \"2.0\""));
    }
    let connection = connection_of(&service, &uri, &sender).await?;
    let _serving = connection.begin_request();
    let status = match envelope.kind {
        Kind::Request | Kind::Notification => StatusCode::ACCEPTED,
        Kind::Result | Kind::Error => StatusCode::NO_CONTENT,
    };
    let posted = Posted {
        frame,
        envelope,
        session: None,
        name: None,
    };
    Ok(accepted(status, connection.accept(posted).await?))
}

/// Answers `GET …/sse`.
pub(super) async fn sse(
    State(service): State<Arc<AcpService>>,
    sender: AuthenticatedClient,
    uri: Uri,
) -> Result<Response, Refusal> {
    let connection = connection_of(&service, &uri, &sender).await?;
    let lease = connection.open(CONNECTION, Opening::Takeover)?;
    Ok(EventStream::new(connection, lease).into_response())
}

/// The connection of a client, which names itself in the query; its first request opens it.
async fn connection_of(
    service: &AcpService,
    uri: &Uri,
    sender: &AuthenticatedClient,
) -> Result<Arc<Connection>, Refusal> {
    let query = uri.query().unwrap_or_default();
    let mut ids = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("client_id="));
    let id = ids
        .next()
        .filter(|id| (1..=MAX_CLIENT_ID).contains(&id.len()));
    let id = id.ok_or_else(|| {
        let why = "client_id is missing from the query, or is longer than 256 bytes";
        Refusal::bad_request(why)
    })?;
    let (owner, limits) = (&sender.principal, &service.port.limits);
    let (connection, is_new) = service.connections.open_elephant(id, owner, limits);
    if is_new {
        service.announce(&connection, sender).await?;
    }
    Ok(connection)
}
