//! Accepts a WebSocket (RFC 6455, section 4.2).
//!
//! Once the 101 has left, the socket is taken out of the HTTP server with the bytes that were read
//! after the request, and nothing of HTTP stays in memory. No extension is negotiated: compression
//! across messages of different trust leaks them, and costs memory for each connection.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL, SET_COOKIE, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{StatusCode, Version};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_util::either::Either;

use super::connection::new_id;
use super::service::AcpService;
use crate::Links;
use crate::http::headers::{CONNECTION_ID, LINK_HELLO, MAX_MESSAGE, longest, wants_upgrade};
use crate::http::port::caller::AuthenticatedClient;
use crate::http::port::credentials::{is_forwarded, offers, subprotocol};
use crate::http::port::refusal::Refusal;
use crate::http::port::socket::Socket;
use crate::resumable::{SUBPROTOCOL, begun, carrier_limits};
use crate::websocket::{Role, link};
use auth::AuthMethod;
use jsonrpc::Frame;
use jsonrpc::framing::Decoded;
use panics::{self, Place};

/// Opens a WebSocket, or returns why not.
pub(super) async fn upgrade(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    mut request: Request,
) -> Result<Response, Refusal> {
    if request.version() > Version::HTTP_11 || !wants_upgrade(request.headers(), b"websocket") {
        let why = "this is a WebSocket endpoint; the request has to upgrade to it";
        return Err(Refusal::upgrade(why));
    }
    // It may be one of several in a list, which the library does not read.
    let protocol = HeaderValue::from_static("websocket");
    request.headers_mut().insert(UPGRADE, protocol);
    let answer = create_response_with_body(&request, Body::empty);
    let mut answer = answer.map_err(|error| match error {
        Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader) => {
            Refusal::upgrade("only version 13 of the WebSocket protocol is supported here")
        }
        error => Refusal::fatal(StatusCode::BAD_REQUEST, error.to_string()),
    })?;
    if service.port.is_closed() {
        return Err(Refusal::closing());
    }
    let fields = answer.headers_mut();
    if let Ok(id) = HeaderValue::try_from(new_id()) {
        fields.insert(CONNECTION_ID, id);
    }
    if let Some(Ok(protocol)) = subprotocol(request.headers()).map(HeaderValue::from_str) {
        fields.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    if let Some(cookie) = service.cookie() {
        fields.insert(SET_COOKIE, cookie);
    }
    let links = service.port.setup.links.clone();
    let is_known = client.principal.auth_method != AuthMethod::Anonymous;
    let links = links.filter(|_| is_known && offers(request.headers(), SUBPROTOCOL));
    let mut greeting = None;
    if links.is_some() {
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        fields.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        greeting = request.headers_mut().remove(LINK_HELLO);
        if greeting.is_some() {
            fields.insert(LINK_HELLO, HeaderValue::from_static("taken"));
        }
    } else {
        fields.insert(MAX_MESSAGE, service.port.limits.frame_from_network.into());
    }
    let upgraded = hyper::upgrade::on(&mut request);
    let shown = request.headers();
    let shown = (longest(shown), !is_forwarded(shown));
    let links = links.map(|links| (links, greeting));
    let taken = take_over(service, upgraded, client, shown, links);
    tokio::spawn(panics::confine(Place::Connection, Box::pin(taken)));
    Ok(answer)
}

/// Takes the socket over once the 101 has left. With the links that it may be for goes the client's
/// greeting, if the request had it.
async fn take_over(
    service: Arc<AcpService>,
    upgraded: OnUpgrade,
    client: AuthenticatedClient,
    (longest, is_direct): (usize, bool),
    links: Option<(Arc<Links>, Option<HeaderValue>)>,
) {
    let Ok(upgraded) = upgraded.await else {
        return;
    };
    let Ok(parts) = downcast::<TokioIo<Socket>>(upgraded) else {
        tracing::error!("a WebSocket's socket is not the one that was accepted");
        return;
    };
    let initial = &parts.read_buf[..];
    let (name, own) = (client.from.to_string(), &service.port.limits);
    let limits = match links {
        Some(_) => carrier_limits(own),
        None => Arc::clone(own),
    };
    let carries = links.is_some();
    let mut link = match parts.io.into_inner().stream {
        Either::Left(stream) => link(stream, initial, Role::Server, name, &limits, carries),
        Either::Right(stream) => link(*stream, initial, Role::Server, name, &limits, carries),
    };
    link.peer.principal = Some(client.principal);
    link.peer.wanted_agent = client.wanted_agent;
    (link.peer.longest, link.peer.is_direct) = (longest, is_direct);
    if let Some((links, greeting)) = links {
        if let Some(greeting) = greeting {
            let line = [greeting.as_bytes(), b"\n"].concat();
            link = begun(link, Some(Ok(Decoded::Frame(Frame::new(line)))));
        }
        let Some(new) = links.accept(link, own).await else {
            return;
        };
        link = new;
    }
    // A failure needs no handling: the socket is closed with the link.
    let _ = service.port.announce(&client.from, link).await;
}
