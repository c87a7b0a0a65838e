//! GET: opens, restarts or resumes a stream of server-sent events.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};

use super::events::{EventStream, read_id};
use super::refusal::Refusal;
use super::routing::SESSION_ID;
use super::service::{AcpService, single};
use super::streams::{CONNECTION, Opening};
use crate::transport::http::headers::{self, LAST_EVENT_ID};
use crate::transport::http::port::caller::AuthenticatedClient;

/// Opens a stream of the client.
pub(super) async fn open_stream(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    fields: HeaderMap,
) -> Result<Response, Refusal> {
    check_accept(&fields)?;
    let connection = service.connection(&fields, &client)?;
    let connection = connection.ok_or_else(Refusal::no_connection)?;
    let session = single(&fields, &headers::SESSION_ID)?;
    if session.is_some_and(|session| session.len() > SESSION_ID) {
        return Err(Refusal::bad_request(
            "Acp-Session-Id is longer than 1024 bytes",
        ));
    }
    let opening = match single(&fields, &LAST_EVENT_ID)? {
        // A relay repeats a GET with this header when it has not received the head of the response.
        None if fields.contains_key(headers::IDEMPOTENCY_KEY) => Opening::Restart,
        None => Opening::Fresh,
        Some(last) => {
            let read = read_id(last, &connection);
            let (stream, number) = read.ok_or_else(Refusal::forgotten)?;
            Opening::After(stream, number)
        }
    };
    let lease = connection.open(session.unwrap_or(CONNECTION), opening)?;
    let mut answer = EventStream::new(connection, lease).into_response();
    for name in [headers::CONNECTION_ID, headers::SESSION_ID] {
        if let Some(value) = fields.get(&name).filter(|value| !value.is_empty()) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    Ok(answer)
}

/// Refuses clients whose `Accept` does not list `text/event-stream`, which ACP requires: wildcards
/// and weights are not read.
fn check_accept(fields: &HeaderMap) -> Result<(), Refusal> {
    let lists_events = |value: &HeaderValue| {
        let text = value.as_bytes().to_ascii_lowercase();
        memchr::memmem::find(&text, b"text/event-stream").is_some()
    };
    let why = "Accept must list text/event-stream";
    let listed = fields.get_all(ACCEPT).iter().any(lists_events);
    let refusal = || Refusal::new(StatusCode::NOT_ACCEPTABLE, why);
    listed.then_some(()).ok_or_else(refusal)
}
