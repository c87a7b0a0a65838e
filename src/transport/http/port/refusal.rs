//! Responses that the port makes: refusals, each a status and a short body with what was expected,
//! and streams of events.

use std::borrow::Cow;
use std::convert::Infallible;

use axum::Extension;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use hyper::StatusCode;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE,
};

use auth::RejectReason;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Frame, Id};

/// Why a request is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// Its body.
    pub why: Why,
    /// Headers with what to do instead.
    fields: Vec<(HeaderName, HeaderValue)>,
    /// Whether the socket is closed after it.
    pub(super) hang_up: bool,
    /// The reason it is counted under; `None` when it is not counted.
    pub(super) count_as: Option<RejectReason>,
}

/// The body of a refusal.
#[derive(Clone, Debug)]
pub enum Why {
    /// For a person.
    Text(Cow<'static, str>),
    /// A JSON-RPC error.
    Error(Frame),
}

impl Refusal {
    /// A refusal with a text as its body.
    pub fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self::with(status, Why::Text(why.into()))
    }

    /// A refusal with a JSON-RPC error as its body.
    pub(crate) fn error(status: StatusCode, error: Frame) -> Self {
        Self::with(status, Why::Error(error))
    }

    pub(crate) fn bad_request(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// A refusal after which the socket is closed.
    pub fn fatal(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        let mut refusal = Self::new(status, why);
        refusal.hang_up = true;
        refusal.with_field(CONNECTION, "close")
    }

    /// Only this method is for this path.
    pub(crate) fn method(allowed: &'static str) -> Self {
        let why = format!("this path takes {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, why).with_field(ALLOW, allowed)
    }

    /// The same request may succeed in a moment.
    pub(crate) fn unavailable(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why).with_field(RETRY_AFTER, "1")
    }

    /// The relay is shutting down.
    pub(crate) fn closing() -> Self {
        Self::unavailable("the relay is shutting down").counted_as(RejectReason::Draining)
    }

    /// Only WebSockets are served.
    pub(in crate::http) fn upgrade(why: &'static str) -> Self {
        Self::fatal(StatusCode::UPGRADE_REQUIRED, why)
            .with_field(UPGRADE, "websocket")
            .with_field(SEC_WEBSOCKET_VERSION, "13")
    }

    pub(in crate::http) fn no_connection() -> Self {
        Self::bad_request("Acp-Connection-Id is missing")
    }

    pub(in crate::http) fn unknown_connection() -> Self {
        let why = "Acp-Connection-Id names no open connection; start with initialize";
        Self::new(StatusCode::NOT_FOUND, why).counted_as(RejectReason::Unknown)
    }

    /// A stream cannot be resumed without a gap.
    pub(in crate::http) fn forgotten() -> Self {
        let message = "the messages behind this Last-Event-ID are not kept; \
                       open the stream without it, or load the session again";
        let error = reply::error(Id::Null, &Reason::new(reply::RESUME_GAP, message));
        Self::error(StatusCode::GONE, error)
    }

    /// Adds a header, in HTTP/1.1 form.
    pub(crate) fn with_field(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.fields.push((name, value));
        }
        self
    }

    /// Counts it under another reason than that of its status.
    pub(crate) fn counted_as(self, reason: RejectReason) -> Self {
        let count_as = Some(reason);
        Self { count_as, ..self }
    }

    fn with(status: StatusCode, why: Why) -> Self {
        Self {
            status,
            why,
            fields: Vec::new(),
            hang_up: false,
            count_as: counted(status),
        }
    }

    /// The response: a text for a person, or the error.
    pub(crate) fn into_answer(mut self) -> Response {
        let fields = self.take_fields();
        let mut answer = match self.why {
            Why::Text(why) => text(self.status, "text/plain; charset=utf-8", format!("{why}\n")),
            Why::Error(frame) => text(self.status, "application/json", frame.into_bytes()),
        };
        answer.headers_mut().extend(fields);
        answer
    }

    /// Its headers.
    pub fn take_fields(&mut self) -> HeaderMap {
        std::mem::take(&mut self.fields).into_iter().collect()
    }
}

/// A response that carries the refusal to the port, which reports and writes it.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Extension(self)).into_response()
    }
}

/// A text of this content type.
pub(crate) fn text(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Response {
    (status, [(CONTENT_TYPE, kind)], text.into()).into_response()
}

/// A stream of events. The headers ask intermediaries not to buffer it.
pub fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let fields = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let body = Body::from_stream(events.map(Ok::<_, Infallible>));
    (fields, body).into_response()
}

/// The reason under which a refusal with this status is counted.
fn counted(status: StatusCode) -> Option<RejectReason> {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS => Some(RejectReason::Auth),
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => Some(RejectReason::Policy),
        StatusCode::REQUEST_TIMEOUT => Some(RejectReason::Timeout),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::SERVICE_UNAVAILABLE => {
            Some(RejectReason::Limit)
        }
        // It conflicts with the state of the connection, and is not a rejected client.
        StatusCode::CONFLICT | StatusCode::GONE => None,
        status => status.is_client_error().then_some(RejectReason::Handshake),
    }
}
