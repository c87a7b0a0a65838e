//! HTTP responses of the Agent Connect server.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::poll_fn;
use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_LOCATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::agent_connect::api::api_error::ApiError;
use crate::transport::http::port::answer;
use crate::transport::http::port::refusal::{Refusal, Why};

/// The response of a handler.
pub(super) type Reply = Result<Response, ApiError>;

/// A response with a JSON value.
pub(super) fn json(value: &impl Serialize) -> Reply {
    let text = serde_json::to_string(value);
    let text = text.map_err(|fault| ApiError::unavailable(fault.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

/// A response without a body.
pub(super) fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// The same response, with the URL of the resource (RFC 9110, 8.7).
pub(super) fn with_location(mut answer: Response, url: &str) -> Response {
    if let Ok(url) = HeaderValue::from_str(url) {
        answer.headers_mut().insert(CONTENT_LOCATION, url);
    }
    answer
}

/// A response with a stream of events. (The events of `axum::response::sse` have a keep-alive that
/// Agent Connect's SDK takes for an event.)
pub(super) fn events(mut events: mpsc::Receiver<Bytes>) -> Response {
    answer::events(poll_fn(move |cx| events.poll_recv(cx)))
}

/// A rejection by the port, in the form of an error.
pub(super) fn refusal(refusal: Refusal) -> Response {
    let mut fields = hyper::HeaderMap::new();
    refusal.write_fields(&mut fields);
    let message = match refusal.why {
        Why::Text(text) => text,
        Why::Error(_) => "refused".into(),
    };
    let status = refusal.status.as_u16();
    let mut answer = ApiError { status, message }.into_response();
    answer.headers_mut().extend(fields);
    answer
}

/// The response of the router, which has no body where the path takes other methods.
pub(super) fn with_allowed_methods(answer: Response) -> Response {
    if answer.status() != StatusCode::METHOD_NOT_ALLOWED {
        return answer;
    }
    let allowed = answer.headers().get(ALLOW);
    let allowed = allowed.and_then(|allowed| allowed.to_str().ok());
    let allowed = allowed.unwrap_or_default().split(',');
    let allowed: Vec<&str> = allowed.filter(|method| *method != "HEAD").collect();
    let allowed = allowed.join(", ");
    let fault = ApiError {
        status: 405,
        message: format!("this path takes {allowed}").into(),
    };
    ([(ALLOW, allowed)], fault).into_response()
}

/// The body of an error is its message, as a JSON string.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        tracing::debug!(%status, what = %self.message, "a request was rejected");
        let body = serde_json::Value::from(self.message).to_string();
        let mut answer = (status, [(CONTENT_TYPE, "application/json")], body).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            answer
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}
