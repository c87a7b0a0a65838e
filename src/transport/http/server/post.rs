//! POST: a message of a client: the first, which opens a connection, and all others.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, SET_COOKIE};
use hyper::{Request, StatusCode};

use super::answer::{self, Answer};
use super::connection::{Connection, Departure};
use super::inbound::Accepted;
use super::refusal::Refusal;
use super::service::AcpService;
use super::turn::Turn;
use crate::jsonrpc::reply;
use crate::jsonrpc::{Envelope, Frame, Id, Kind, Scanned, scan};
use crate::transport::http::names;
use crate::transport::http::port::body;
use crate::transport::http::port::caller::AuthenticatedClient;

/// A connection that is not open yet: it ends with the request that opens it.
struct PendingConnection(Option<Arc<Connection>>);

/// Answers a POST.
pub(super) async fn post(
    service: &Arc<AcpService>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    client: &AuthenticatedClient,
) -> Result<Answer, Refusal> {
    let fields = request.headers();
    check_type(fields)?;
    let connection = single(fields, &names::CONNECTION)?.map(str::to_owned);
    let session = single(fields, &names::SESSION)?.map(str::to_owned);
    let name = single(fields, &names::IDEMPOTENCY_KEY)?.map(str::to_owned);
    // A client without a valid connection is refused before its body is read.
    let connection = match connection {
        Some(id) => Some(
            service
                .connections
                .get(&id, &client.principal)
                .ok_or_else(Refusal::unknown_connection)?,
        ),
        None => None,
    };
    let serving = connection.as_ref().map(Connection::begin_request);
    let (body, share) = body::read(
        request.into_body(),
        &service.port.bodies,
        &service.port.limits,
    )
    .await?;
    let (frame, envelope) = parse(Frame::new(body), service)?;
    let first = envelope.kind == Kind::Request && envelope.method(&frame) == "initialize";
    match connection {
        Some(_) if first => Err(Refusal::bad_request(
            "initialize opens a connection; it is not for one that is open",
        )),
        Some(connection) => {
            let (session, name) = (session.as_deref(), name.as_deref());
            let accepted = connection.accept(frame, &envelope, session, name, turn);
            let accepted = accepted.await?;
            drop((serving, share));
            Ok(match accepted {
                Accepted::New(release) => answer::accepted(StatusCode::ACCEPTED, release),
                Accepted::Repeated => answer::empty(StatusCode::ACCEPTED),
            })
        }
        None if first => initialize(service, frame, &envelope, client).await,
        None => Err(Refusal::bad_request(
            "Acp-Connection-Id is missing; it comes with the answer to initialize",
        )),
    }
}

/// Parses the one message of a body.
pub(super) fn parse(frame: Frame, service: &AcpService) -> Result<(Frame, Envelope), Refusal> {
    let error = |error| Refusal::error(StatusCode::BAD_REQUEST, error);
    match scan(&frame, &service.port.limits) {
        Scanned::Message(envelope) => Ok((frame, envelope)),
        Scanned::Batch => Err(error(reply::batch())),
        Scanned::Invalid(invalid) => Err(error(reply::frame_error(&invalid))),
    }
}

/// The only header of that name, as text; an empty one counts as none.
pub(super) fn single<'a>(
    fields: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Refusal> {
    let mut all = fields.get_all(name).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) if all.next().is_none() => Ok(Some(text).filter(|text| !text.is_empty())),
        Ok(_) => Err(Refusal::bad_request(format!("{name} is given twice"))),
        Err(_) => Err(Refusal::bad_request(format!("{name} is not plain ASCII"))),
    }
}

/// Refuses all but plain JSON. Web pages may post other types anywhere without a preflight request.
pub(super) fn check_type(fields: &HeaderMap) -> Result<(), Refusal> {
    let refusal = |why: &'static str| Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    let given = single(fields, &CONTENT_TYPE)?;
    let media_type = given.and_then(|value| value.split(';').next());
    if !media_type.is_some_and(|name| name.trim().eq_ignore_ascii_case("application/json")) {
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
    service: &Arc<AcpService>,
    frame: Frame,
    envelope: &Envelope,
    client: &AuthenticatedClient,
) -> Result<Answer, Refusal> {
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
    let mut answer = answer::text(StatusCode::OK, "application/json", answer.into_bytes());
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
