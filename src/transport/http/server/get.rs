//! GET: a client opens one of its streams.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, UPGRADE};

use super::events::{EventStream, read_id};
use super::refusal::Refusal;
use super::routing::SESSION_ID;
use super::service::{AcpService, single};
use super::streams::Opening;
use crate::transport::http::names;
use crate::transport::http::port::caller::AuthenticatedClient;
use crate::transport::http::port::origin_check::wants_upgrade;

/// The id of the last event that a returning client has received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Answers a GET.
pub(super) async fn open_stream(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    fields: HeaderMap,
) -> Result<Response, Refusal> {
    // The upgrade to HTTP/2 is obsolete, and ignored.
    if fields.contains_key(UPGRADE) && !wants_upgrade(&fields, b"h2c") {
        let why = "this endpoint upgrades to WebSocket and to nothing else";
        return Err(Refusal::upgrade(why));
    }
    check_accept(&fields)?;
    let connection = service.connection(&fields, &client)?;
    let connection = connection.ok_or_else(Refusal::no_connection)?;
    let session = single(&fields, &names::SESSION)?;
    if session.is_some_and(|session| session.len() > SESSION_ID) {
        return Err(Refusal::bad_request(
            "Acp-Session-Id is longer than 1024 bytes",
        ));
    }
    let how = match single(&fields, &LAST_EVENT_ID)? {
        None if fields.contains_key(names::IDEMPOTENCY_KEY) => Opening::Restart,
        None => Opening::Fresh,
        Some(last) => {
            let read = read_id(last, connection.epoch);
            let (stream, number) = read.ok_or_else(Refusal::forgotten)?;
            Opening::After(stream, number)
        }
    };
    let lease = connection.open(session, how)?;
    let mut answer = EventStream::new(connection, lease).into_response();
    for name in [names::CONNECTION, names::SESSION] {
        if let Some(value) = fields.get(&name).filter(|value| !value.is_empty()) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    Ok(answer)
}

/// Refuses clients that do not accept events.
fn check_accept(fields: &HeaderMap) -> Result<(), Refusal> {
    let mut accepted = fields.get_all(ACCEPT).iter();
    let lists_events = |value: &HeaderValue| {
        let text = value.as_bytes().to_ascii_lowercase();
        memchr::memmem::find(&text, b"text/event-stream").is_some()
    };
    if accepted.any(lists_events) {
        return Ok(());
    }
    let why = "Accept must list text/event-stream";
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, why))
}
