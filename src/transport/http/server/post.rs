//! POST: a message of a client: the first, which opens a connection, and all others.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, SET_COOKIE};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;
use tokio_util::sync::PollSemaphore;

use super::connection::Connection;
use super::inbound::Posted;
use super::service::{AcpService, single};
use crate::http::headers;
use crate::http::port::body::{self, Share};
use crate::http::port::caller::AuthenticatedClient;
use crate::http::port::refusal::{Refusal, text};
use jsonrpc::reply;
use jsonrpc::{Envelope, Frame, Id, Kind, Scanned, scan};

const JSON: &str = "application/json";
/// Time a message waits for those before it: one whose body does not come must not delay the others
/// for as long as that may take.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The turn of one of the messages that a client sends in parallel: on HTTP/2 and on several
/// sockets they are served in tasks of their own, and only the order in which their heads came is
/// the order in which they were sent. The next one has its turn when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    /// Its place in the queue of the connection's only permit, which is fair.
    place: PollSemaphore,
    permit: Option<OwnedSemaphorePermit>,
}

/// A connection that is not open yet: it ends with the request that opens it.
struct PendingConnection(Option<Arc<Connection>>);

impl Turn {
    /// A turn behind all others, to be taken before anything is awaited.
    pub(super) fn after_all(connection: &Connection) -> Self {
        let mut place = PollSemaphore::new(connection.turns.clone());
        // The first poll enters the queue.
        let permit = match place.poll_acquire(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit,
            Poll::Pending => None,
        };
        Self { place, permit }
    }

    /// Waits until all earlier messages are done, or `MAX_WAIT` is over.
    async fn wait(&mut self) {
        if self.permit.is_none() {
            // A timeout is handled like a turn.
            let acquired = timeout(MAX_WAIT, poll_fn(|cx| self.place.poll_acquire(cx))).await;
            self.permit = acquired.ok().flatten();
        }
    }
}

/// Answers a POST.
pub(super) async fn receive(
    State(service): State<Arc<AcpService>>,
    client: AuthenticatedClient,
    request: Request,
) -> Result<Response, Refusal> {
    let (mut parts, body) = request.into_parts();
    let turn = parts.extensions.remove::<Arc<Turn>>();
    let mut turn = turn.and_then(Arc::into_inner);
    let fields = &parts.headers;
    check_type(fields)?;
    let session = single(fields, &headers::SESSION_ID)?;
    let name = single(fields, &headers::IDEMPOTENCY_KEY)?;
    // A client without a valid connection is refused before its body is read.
    let connection = service.connection(fields, &client)?;
    let _serving = connection.as_ref().map(Connection::begin_request);
    let (frame, envelope, _share) = read_message(&service, body).await?;
    let first = envelope.kind == Kind::Request && envelope.method(&frame) == "initialize";
    match connection {
        Some(_) if first => Err(Refusal::bad_request(
            "initialize opens a connection; it is not for one that is open",
        )),
        Some(connection) => {
            if let Some(turn) = &mut turn {
                turn.wait().await;
            }
            let posted = Posted {
                frame,
                envelope,
                session,
                name,
            };
            let release = connection.accept(posted).await?;
            let release = release.map(|release| (release, turn));
            Ok(accepted(StatusCode::ACCEPTED, release))
        }
        None if first => initialize(&service, frame, &envelope, &client).await,
        None => Err(Refusal::bad_request(
            "Acp-Connection-Id is missing; it comes with the answer to initialize",
        )),
    }
}

/// The response to an accepted message, with an empty body: `release` is dropped with it, once
/// hyper has written the response.
pub(super) fn accepted(status: StatusCode, release: impl Send + 'static) -> Response {
    let body = Empty::<Bytes>::new().map_err(move |never| {
        let _ = &release;
        never
    });
    (status, Body::new(body)).into_response()
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
    let (owner, limits) = (&client.principal, &service.port.limits);
    let connection = service.connections.open(owner, limits);
    let mut pending = PendingConnection(Some(connection.clone()));
    let serving = connection.begin_request();
    let (answered, initialized) = oneshot::channel();
    connection.state().initial = Some((envelope.id(&frame).to_owned(), answered));
    service.announce(&connection, client).await?;
    connection.deliver(frame.clone());
    let Ok(answer) = initialized.await else {
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
        fields.insert(headers::CONNECTION_ID, id);
    }
    let grace = service.port.limits.http_grace;
    fields.insert(headers::GRACE, headers::millis(grace));
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
            connection.depart(None);
        }
    }
}
