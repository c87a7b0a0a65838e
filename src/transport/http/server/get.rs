//! GET: a client opens one of its streams.

use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};

use super::answer::{self, Answer};
use super::events::{EventStream, read_id};
use super::post::single;
use super::refusal::Refusal;
use super::routing::SESSION_ID;
use super::service::AcpService;
use super::streams::Opening;
use crate::transport::http::names;
use crate::transport::http::port::caller::AuthenticatedClient;

/// The id of the last event that a returning client has received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Answers a GET.
pub(super) fn get(
    service: &AcpService,
    request: &Request<Incoming>,
    client: &AuthenticatedClient,
) -> Result<Answer, Refusal> {
    let fields = request.headers();
    check_accept(fields)?;
    let id = single(fields, &names::CONNECTION)?;
    let id = id.ok_or_else(|| Refusal::bad_request("Acp-Connection-Id is missing"))?;
    let connection = service
        .connections
        .get(id, &client.principal)
        .ok_or_else(Refusal::unknown_connection)?;
    let session = single(fields, &names::SESSION)?;
    if session.is_some_and(|session| session.len() > SESSION_ID) {
        return Err(Refusal::bad_request(
            "Acp-Session-Id is longer than 1024 bytes",
        ));
    }
    let last = single(fields, &LAST_EVENT_ID)?;
    let lease = match last {
        None if fields.contains_key(names::IDEMPOTENCY_KEY) => {
            connection.open(session, Opening::Restart)
        }
        None => connection.open(session, Opening::Fresh),
        Some(last) => {
            let read = read_id(last, connection.epoch);
            let (stream, number) = read.ok_or_else(Refusal::forgotten)?;
            connection.open(session, Opening::After(stream, number))
        }
    };
    let lease = lease.ok_or_else(Refusal::unknown_connection)??;
    let mut answer = answer::events(EventStream::new(connection.clone(), lease));
    let given = [(names::CONNECTION, Some(id)), (names::SESSION, session)];
    for (name, value) in given {
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            answer.headers_mut().insert(name, value);
        }
    }
    Ok(answer)
}

/// Refuses clients that do not accept events.
pub(super) fn check_accept(fields: &HeaderMap) -> Result<(), Refusal> {
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
