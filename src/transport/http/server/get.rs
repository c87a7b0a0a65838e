//! GET: opens, restarts or resumes a stream of server-sent events.

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

/// Opens a stream of the client.
pub(super) async fn open_stream(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    // h2c is obsolete (RFC 9113, 3.1): such a request is served as any other GET.
    if headers.contains_key(UPGRADE) && !wants_upgrade(&headers, b"h2c") {
        let why = "this endpoint upgrades to WebSocket and to nothing else";
        return Err(Refusal::upgrade(why));
    }
    check_accept(&headers)?;
    let connection = service.connection(&headers, &client)?;
    let connection = connection.ok_or_else(Refusal::no_connection)?;
    let session = single(&headers, &names::SESSION)?;
    if session.is_some_and(|session| session.len() > SESSION_ID) {
        return Err(Refusal::bad_request(
            "Acp-Session-Id is longer than 1024 bytes",
        ));
    }
    let opening = match single(&headers, &LAST_EVENT_ID)? {
        // A relay repeats a GET with this header when it has not received the head of the response.
        None if headers.contains_key(names::IDEMPOTENCY_KEY) => Opening::Restart,
        None => Opening::Fresh,
        Some(last) => {
            let read = read_id(last, connection.epoch);
            let (stream, number) = read.ok_or_else(Refusal::forgotten)?;
            Opening::After(stream, number)
        }
    };
    let lease = connection.open(session, opening)?;
    let mut answer = EventStream::new(connection, lease).into_response();
    for name in [names::CONNECTION, names::SESSION] {
        if let Some(value) = headers.get(&name).filter(|value| !value.is_empty()) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    Ok(answer)
}

/// Refuses clients whose `Accept` does not list `text/event-stream`, which ACP requires: wildcards
/// and weights are not read.
fn check_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut accepted = headers.get_all(ACCEPT).iter();
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
