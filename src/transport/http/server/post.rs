//! POST: a message of a client: the first, which opens a connection, and all others.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, SET_COOKIE};
use hyper::{Request, StatusCode};

use super::answer::{self, Answer};
use super::connection::{Connection, Left};
use super::inbound::Taken;
use super::refuse::Refusal;
use super::service::Service;
use super::turn::Turn;
use crate::jsonrpc::reply;
use crate::jsonrpc::{Envelope, Frame, Id, Kind, Shape, scan};
use crate::transport::http::names;
use crate::transport::http::port::body;
use crate::transport::http::port::caller::Guest;

/// A connection that is not open yet: it ends with the request that opens it.
struct Hopeful(Option<Arc<Connection>>);

/// Answers a POST.
pub(super) async fn post(
    service: &Arc<Service>,
    request: Request<Incoming>,
    turn: Option<Turn>,
    guest: &Guest,
) -> Result<Answer, Refusal> {
    let fields = request.headers();
    check_type(fields)?;
    let connection = only(fields, &names::CONNECTION)?.map(str::to_owned);
    let session = only(fields, &names::SESSION)?.map(str::to_owned);
    let name = only(fields, &names::REPEAT)?.map(str::to_owned);
    // A client without a valid connection is refused before its body is read.
    let connection = match connection {
        Some(id) => Some(
            service
                .register
                .get(&id, &guest.principal)
                .ok_or_else(Refusal::unknown_connection)?,
        ),
        None => None,
    };
    let serving = connection.as_ref().map(Connection::serve);
    let (body, share) = body::read(
        request.into_body(),
        &service.port.bodies,
        &service.port.limits,
    )
    .await?;
    let (frame, envelope) = message(Frame::new(body), service)?;
    let first = envelope.kind == Kind::Request && envelope.method(&frame) == "initialize";
    match connection {
        Some(_) if first => Err(Refusal::bad(
            "initialize opens a connection; it is not for one that is open",
        )),
        Some(connection) => {
            let (session, name) = (session.as_deref(), name.as_deref());
            let taken = connection.take(frame, &envelope, session, name, turn);
            let taken = taken.await?;
            drop((serving, share));
            Ok(match taken {
                Taken::New(release) => answer::accepted(StatusCode::ACCEPTED, release),
                Taken::Before => answer::empty(StatusCode::ACCEPTED),
            })
        }
        None if first => initialize(service, frame, &envelope, guest).await,
        None => Err(Refusal::bad(
            "Acp-Connection-Id is missing; it comes with the answer to initialize",
        )),
    }
}

/// Parses the one message of a body.
pub(super) fn message(frame: Frame, service: &Service) -> Result<(Frame, Envelope), Refusal> {
    let error = |error| Refusal::error(StatusCode::BAD_REQUEST, error);
    match scan(&frame, &service.port.limits) {
        Shape::One(envelope) => Ok((frame, envelope)),
        Shape::Batch => Err(error(reply::batch())),
        Shape::Bad(flaw) => Err(error(reply::flaw(&flaw))),
    }
}

/// The only header of that name, as text; an empty one counts as none.
pub(super) fn only<'a>(
    fields: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Refusal> {
    let mut all = fields.get_all(name).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) if all.next().is_none() => Ok(Some(text).filter(|text| !text.is_empty())),
        Ok(_) => Err(Refusal::bad(format!("{name} is given twice"))),
        Err(_) => Err(Refusal::bad(format!("{name} is not plain ASCII"))),
    }
}

/// Refuses all but plain JSON. Web pages may post other types anywhere without a preflight request.
pub(super) fn check_type(fields: &HeaderMap) -> Result<(), Refusal> {
    let refusal = |why: &'static str| Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    let given = only(fields, &CONTENT_TYPE)?;
    let essence = given.and_then(|value| value.split(';').next());
    if !essence.is_some_and(|name| name.trim().eq_ignore_ascii_case("application/json")) {
        return Err(refusal("Content-Type must be application/json"));
    }
    match only(fields, &CONTENT_ENCODING)? {
        Some(coding) if !coding.trim().eq_ignore_ascii_case("identity") => Err(refusal(
            "the body must be sent without a Content-Encoding",
        )),
        _ => Ok(()),
    }
}

async fn initialize(
    service: &Arc<Service>,
    frame: Frame,
    envelope: &Envelope,
    guest: &Guest,
) -> Result<Answer, Refusal> {
    if envelope.id(&frame) == Id::Null {
        return Err(Refusal::bad("initialize must have an id"));
    }
    let connection = service
        .register
        .open(&guest.principal, &service.port.limits);
    let connection =
        connection.map_err(|why| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, why))?;
    let mut hopeful = Hopeful(Some(connection.clone()));
    let serving = connection.serve();
    let answered = connection.initial(envelope.id(&frame).to_owned());
    service.arrive(&connection, guest).await?;
    connection.hear(frame.clone());
    let Some(answer) = answered.await else {
        let reason = reply::Reason::new(reply::PEER_LOST, "the conversation has ended")
            .at(reply::Source::Agent);
        let error = reply::error(envelope.id(&frame), &reason);
        return Err(Refusal::error(StatusCode::BAD_GATEWAY, error));
    };
    let accepted = matches!(
        scan(&answer, &service.port.limits),
        Shape::One(Envelope {
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
        hopeful.0 = None;
    }
    drop(serving);
    Ok(answer)
}

impl Drop for Hopeful {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.leave(Left::Politely);
        }
    }
}
