//! Accepts a WebSocket (RFC 6455, section 4.2).
//!
//! Once the 101 has left, the socket is taken out of the HTTP server with the bytes that were read
//! after the request, and nothing of HTTP stays in memory. No extension is negotiated: compression
//! across messages of different trust leaks them, and costs memory for each connection.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use data_encoding::BASE64;
use hyper::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, SET_COOKIE, UPGRADE,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, StatusCode, Version};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use tokio_util::either::Either;

use super::connections::new_id;
use super::refusal::Refusal;
use super::service::{AcpService, single};
use crate::transport::http::content::lists;
use crate::transport::http::names;
use crate::transport::http::port::caller::AuthenticatedClient;
use crate::transport::http::port::credentials::subprotocol;
use crate::transport::http::port::origin_check::wants_upgrade;
use crate::transport::http::port::socket::Socket;
use crate::transport::websocket::{Role, derive_accept_key, link};

/// Opens a WebSocket, or returns why not.
pub(super) async fn upgrade(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    mut request: Request,
) -> Result<Response, Refusal> {
    let accept = check(&request)?;
    if service.port.is_closed() {
        return Err(Refusal::closing());
    }
    let failed = |why| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, why);
    let id = new_id().map_err(failed)?;
    let upgraded = hyper::upgrade::on(&mut request);
    let switch = [
        (CONNECTION, "Upgrade"),
        (UPGRADE, "websocket"),
        (SEC_WEBSOCKET_ACCEPT, &accept),
        (names::CONNECTION, &id),
    ];
    let mut answer = (StatusCode::SWITCHING_PROTOCOLS, switch).into_response();
    let fields = answer.headers_mut();
    let protocol = subprotocol(request.headers()).map(HeaderValue::from_str);
    if let Some(Ok(protocol)) = protocol {
        fields.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    if let Some(cookie) = service.cookie() {
        fields.insert(SET_COOKIE, cookie);
    }
    tokio::spawn(take_over(service, upgraded, client));
    Ok(answer)
}

/// The answer to a client's key, or the refusal.
fn check(request: &Request) -> Result<String, Refusal> {
    let fields = request.headers();
    if request.version() > Version::HTTP_11 || !wants_upgrade(fields, b"websocket") {
        let why = "this is a WebSocket endpoint; the request has to upgrade to it";
        return Err(Refusal::upgrade(why));
    }
    let only = |name| single(fields, &name).ok().flatten();
    if only(SEC_WEBSOCKET_VERSION) != Some("13") {
        let why = "only version 13 of the WebSocket protocol is supported here";
        return Err(Refusal::upgrade(why));
    }
    if request.method() != Method::GET || !lists(fields, &CONNECTION, b"upgrade") {
        let why = "a WebSocket is opened with GET and \"Connection: Upgrade\"";
        return Err(Refusal::fatal(StatusCode::BAD_REQUEST, why));
    }
    let key = only(SEC_WEBSOCKET_KEY).map(str::as_bytes);
    match key {
        Some(key) if BASE64.decode(key).is_ok_and(|nonce| nonce.len() == 16) => {
            Ok(derive_accept_key(key))
        }
        _ => {
            let why = "Sec-WebSocket-Key is not one Base64 text of 16 bytes";
            Err(Refusal::fatal(StatusCode::BAD_REQUEST, why))
        }
    }
}

/// Takes the socket over once the 101 has left.
async fn take_over(service: Arc<AcpService>, upgraded: OnUpgrade, client: AuthenticatedClient) {
    let Ok(upgraded) = upgraded.await else {
        return;
    };
    let Ok(parts) = downcast::<TokioIo<Socket>>(upgraded) else {
        tracing::error!("a WebSocket's socket is not the one that was accepted");
        return;
    };
    let initial = &parts.read_buf[..];
    let (name, setup) = (client.from.to_string(), &service.port.setup);
    let mut link = match parts.io.into_inner().stream {
        Either::Left(stream) => link(stream, initial, Role::Server, name, setup),
        Either::Right(stream) => link(*stream, initial, Role::Server, name, setup),
    };
    link.peer.principal = Some(client.principal);
    link.peer.wanted_agent = client.wanted_agent;
    // A failure needs no handling: the socket is closed with the link.
    let _ = service.port.announce(&client.from, link).await;
}
