//! POST: a message of a client: the first, which opens a connection, and all others.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, SET_COOKIE};

use super::answer;
use super::connection::{Connection, Departure};
use super::refusal::Refusal;
use super::service::{AcpService, single};
use super::turn::Turn;
use crate::jsonrpc::reply;
use crate::jsonrpc::{Envelope, Frame, Id, Kind, Scanned, scan};
use crate::transport::http::names;
use crate::transport::http::port::answer::text;
use crate::transport::http::port::body::{self, Share};
use crate::transport::http::port::caller::AuthenticatedClient;

const JSON: &str = "application/json";

/// A connection that is not open yet: it ends with the request that opens it.
struct PendingConnection(Option<Arc<Connection>>);

/// Answers a POST.
pub(super) async fn receive(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    request: Request,
) -> Result<Response, Refusal> {
    let (mut parts, body) = request.into_parts();
    let turn = parts.extensions.remove::<Arc<Turn>>();
    let turn = turn.and_then(Arc::into_inner);
    let fields = &parts.headers;
    check_type(fields)?;
    let session = single(fields, &names::SESSION)?;
    let name = single(fields, &names::IDEMPOTENCY_KEY)?;
    // A client without a valid connection is refused before its body is read.
    let connection = service.connection(fields, &client)?;
    let serving = connection.as_ref().map(Connection::begin_request);
    let (frame, envelope, share) = read_message(&service, body).await?;
    let first = envelope.kind == Kind::Request && envelope.method(&frame) == "initialize";
    match connection {
        Some(_) if first => Err(Refusal::bad_request(
            "initialize opens a connection; it is not for one that is open",
        )),
        Some(connection) => {
            let accepted = connection.accept(frame, &envelope, session, name, turn);
            let accepted = accepted.await?;
            drop((serving, share));
            Ok(answer::accepted(StatusCode::ACCEPTED, accepted))
        }
        None if first => initialize(&service, frame, &envelope, &client).await,
        None => Err(Refusal::bad_request(
            "Acp-Connection-Id is missing; it comes with the answer to initialize",
        )),
    }
}

/// Reads the one message of a body. Its share of the memory for bodies is returned when it is
/// dropped.
pub(super) async fn read_message(
    service: &AcpService,
    body: Body,
) -> Result<(Frame, Envelope, Option<Share>), Refusal> {
    let port = &service.port;
    let (body, share) = body::read(body, &port.bodies, &port.limits).await?;
    let error = |error| Refusal::error(StatusCode::BAD_REQUEST, error);
    let frame = Frame::new(body);
    match scan(&frame, &port.limits) {
        Scanned::Message(envelope) => Ok((frame, envelope, share)),
        Scanned::Batch => Err(error(reply::batch())),
        Scanned::Invalid(invalid) => Err(error(reply::frame_error(&invalid))),
    }
}

/// Refuses all but plain JSON. Web pages may post other types anywhere without a preflight request.
pub(super) fn check_type(fields: &HeaderMap) -> Result<(), Refusal> {
    let refusal = |why: &'static str| Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    let given = single(fields, &CONTENT_TYPE)?;
    let media_type = given.and_then(|value| value.split(';').next());
    if !media_type.is_some_and(|name| name.trim().eq_ignore_ascii_case(JSON)) {
        return Err(refusal("Content-Type must be application/json"));
    }
    match single(fields, &CONTENT_ENCODING)? {
        Some(coding) if !coding.trim().eq_ignore_ascii_case("identity") => {
            Err(refusal("the body must be sent without a Content-Encoding"))
        }
        _ => Ok(()),
    }
}

async fn initialize(
    service: &AcpService,
    frame: Frame,
    envelope: &Envelope,
    client: &AuthenticatedClient,
) -> Result<Response, Refusal> {
    if envelope.id(&frame) == Id::Null {
        return Err(Refusal::bad_request("initialize must have an id"));
    }
    let connection = service
        .connections
        .open(&client.principal, &service.port.limits);
    let connection =
        connection.map_err(|why| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, why))?;
    let mut pending = PendingConnection(Some(connection.clone()));
    let serving = connection.begin_request();
    let initialized = connection.initial(envelope.id(&frame).to_owned());
    service.announce(&connection, client).await?;
    connection.deliver(frame.clone());
    let Some(answer) = initialized.await else {
        let reason = reply::Reason::new(reply::PEER_LOST, "the conversation has ended")
            .at(reply::ErrorSource::Agent);
        let error = reply::error(envelope.id(&frame), &reason);
        return Err(Refusal::error(StatusCode::BAD_GATEWAY, error));
    };
    let accepted = matches!(
        scan(&answer, &service.port.limits),
        Scanned::Message(Envelope {
            kind: Kind::Result,
            ..
        })
    );
    let mut answer = text(StatusCode::OK, JSON, answer.into_bytes());
    let fields = answer.headers_mut();
    // Sent even when the agent refused: clients without the id stop there and do not read the
    // error.
    if let Ok(id) = connection.id.parse() {
        fields.insert(names::CONNECTION, id);
    }
    let grace = service.port.limits.http_grace;
    fields.insert(names::GRACE, names::millis(grace));
    if let Some(cookie) = service.cookie() {
        fields.insert(SET_COOKIE, cookie);
    }
    if accepted {
        pending.0 = None;
    }
    drop(serving);
    Ok(answer)
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.depart(Departure::Closed);
        }
    }
}
