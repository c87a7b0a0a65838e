//! Refusals: a status, and a short body with what was expected.

use std::borrow::Cow;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{
    ALLOW, CONNECTION, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_VERSION,
    UPGRADE, WWW_AUTHENTICATE,
};

use super::answer::{self, Answer};
use crate::auth::RejectReason;
use crate::jsonrpc::Frame;

/// Why a request is refused.
#[derive(Debug)]
pub(in crate::transport) struct Refusal {
    pub(in crate::transport) status: StatusCode,
    pub(in crate::transport) why: Why,
    /// A header with what to do instead.
    pub(in crate::transport) field: Option<(HeaderName, Cow<'static, str>)>,
    /// Whether the socket is closed after it.
    pub(in crate::transport) hang_up: bool,
    /// The reason it is counted under; `None` when it is not counted.
    pub(in crate::transport) count_as: Option<RejectReason>,
}

/// The body of a refusal.
#[derive(Debug)]
pub(in crate::transport) enum Why {
    /// For a person.
    Text(Cow<'static, str>),
    /// A JSON-RPC error.
    Error(Frame),
}

impl Refusal {
    pub(in crate::transport) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            why: Why::Text(why.into()),
            field: None,
            hang_up: false,
            count_as: counted(status),
        }
    }

    /// A refusal with a JSON-RPC error as its body.
    pub(in crate::transport) fn error(status: StatusCode, error: Frame) -> Self {
        Self {
            status,
            why: Why::Error(error),
            field: None,
            hang_up: false,
            count_as: counted(status),
        }
    }

    pub(in crate::transport) fn bad_request(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// A refusal after which the socket is closed.
    pub(in crate::transport) fn fatal(
        status: StatusCode,
        why: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut refusal = Self::new(status, why);
        refusal.hang_up = true;
        refusal
    }

    /// Only this method is for this path.
    pub(in crate::transport) fn method(allowed: &'static str) -> Self {
        let why = format!("this path takes {allowed}");
        let mut refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, why);
        refusal.field = Some((ALLOW, Cow::Borrowed(allowed)));
        refusal
    }

    /// The same request may succeed in a moment.
    pub(in crate::transport) fn unavailable(why: impl Into<Cow<'static, str>>) -> Self {
        let mut refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, why);
        refusal.field = Some((RETRY_AFTER, Cow::Borrowed("1")));
        refusal
    }

    /// The relay is shutting down.
    pub(in crate::transport) fn closing() -> Self {
        let mut refusal = Self::unavailable("the relay is shutting down");
        refusal.count_as = Some(RejectReason::Draining);
        refusal
    }

    /// Too many wrong tokens came from the address.
    pub(super) fn too_often(wait: Duration) -> Self {
        let why = "too many wrong tokens have come from this address; try again later";
        let mut refusal = Self::fatal(StatusCode::TOO_MANY_REQUESTS, why);
        // Rounded up to whole seconds.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        refusal.field = Some((RETRY_AFTER, Cow::Owned(seconds.to_string())));
        refusal
    }

    /// Adds the challenge that names the credentials needed.
    pub(super) fn with_challenge(mut self, challenge: &'static str) -> Self {
        self.field = Some((WWW_AUTHENTICATE, Cow::Borrowed(challenge)));
        self
    }

    /// The response: a text for a person, or the error.
    pub(in crate::transport) fn into_answer<E>(self) -> Answer<E> {
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
    pub(in crate::transport) fn write_fields(&self, fields: &mut HeaderMap) {
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
