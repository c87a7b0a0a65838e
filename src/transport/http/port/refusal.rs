//! Refusals: a status, and a short body with what was expected.

use std::borrow::Cow;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{
    ALLOW, CONNECTION, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};

use super::answer;
use crate::auth::RejectReason;
use crate::jsonrpc::Frame;

/// Why a request is refused.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) why: Why,
    /// A header with what to do instead.
    pub(crate) field: Option<(HeaderName, Cow<'static, str>)>,
    /// Whether the socket is closed after it.
    pub(crate) hang_up: bool,
    /// The reason it is counted under; `None` when it is not counted.
    pub(crate) count_as: Option<RejectReason>,
}

/// The body of a refusal.
#[derive(Clone, Debug)]
pub(crate) enum Why {
    /// For a person.
    Text(Cow<'static, str>),
    /// A JSON-RPC error.
    Error(Frame),
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
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
    pub(crate) fn fatal(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            hang_up: true,
            ..Self::new(status, why)
        }
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

    /// Adds a header.
    pub(crate) fn with_field(self, name: HeaderName, value: impl Into<Cow<'static, str>>) -> Self {
        let field = Some((name, value.into()));
        Self { field, ..self }
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
            field: None,
            hang_up: false,
            count_as: counted(status),
        }
    }

    /// The response: a text for a person, or the error.
    pub(crate) fn into_answer(self) -> Response {
        let mut fields = HeaderMap::new();
        self.write_fields(&mut fields);
        let mut answer = match self.why {
            Why::Text(text) => answer::text(
                self.status,
                "text/plain; charset=utf-8",
                format!("{text}\n"),
            ),
            Why::Error(frame) => answer::text(self.status, "application/json", frame.into_bytes()),
        };
        answer.headers_mut().extend(fields);
        answer
    }

    /// Writes its headers, in HTTP/1.1 form.
    pub(crate) fn write_fields(&self, fields: &mut HeaderMap) {
        if let Some((name, value)) = &self.field {
            if *name == UPGRADE {
                let version = HeaderValue::from_static("13");
                fields.insert(SEC_WEBSOCKET_VERSION, version);
            }
            if let Ok(value) = HeaderValue::from_str(value) {
                fields.insert(name, value);
            }
        }
        if self.hang_up {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// A response that carries the refusal from a route to the port, which reports and writes it.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Extension(self)).into_response()
    }
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
