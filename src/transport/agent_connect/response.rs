//! HTTP responses of the Agent Connect server. Those common to all ports are in
//! `http::port::answer`.

use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_LOCATION, HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::agent_connect::api_error::ApiError;
use crate::transport::http::port::answer::{self, BodyStream};
use crate::transport::http::port::refusal::{Refusal, Why};

pub(super) use crate::transport::http::port::answer::empty;

/// A response.
pub(super) type RestResponse = answer::Answer<EventBody>;

/// A body of events, sent as they come.
#[derive(Debug)]
pub(in crate::transport) struct EventBody(mpsc::Receiver<Bytes>);

/// A response with a JSON value.
pub(super) fn json(value: &Value) -> RestResponse {
    json_response(StatusCode::OK, value)
}

/// The same response, with the URL of the resource (RFC 9110, 8.7).
pub(super) fn with_location(mut answer: RestResponse, url: &str) -> RestResponse {
    if let Ok(url) = HeaderValue::from_str(url) {
        answer.headers_mut().insert(CONTENT_LOCATION, url);
    }
    answer
}

/// A response with a stream of events.
pub(super) fn events(events: mpsc::Receiver<Bytes>) -> RestResponse {
    answer::events(EventBody(events))
}

/// An error response: its message, as a JSON string.
pub(super) fn api_error(fault: &ApiError) -> RestResponse {
    let status = StatusCode::from_u16(fault.status);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = json_response(status, &Value::from(&*fault.message));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

/// A rejection by the port, in the same form.
pub(super) fn refusal(refusal: Refusal) -> RestResponse {
    let mut fields = HeaderMap::new();
    refusal.write_fields(&mut fields);
    let message = match refusal.why {
        Why::Text(text) => Value::from(text.into_owned()),
        Why::Error(_) => Value::from("refused"),
    };
    let mut answer = json_response(refusal.status, &message);
    answer.headers_mut().extend(fields);
    answer
}

/// The path takes other methods.
pub(super) fn method_not_allowed(allowed: &'static str) -> RestResponse {
    let message = Value::from(format!("this path takes {allowed}"));
    let mut answer = json_response(StatusCode::METHOD_NOT_ALLOWED, &message);
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn json_response(status: StatusCode, value: &Value) -> RestResponse {
    answer::text(status, "application/json", value.to_string())
}

impl BodyStream for EventBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(cx)
    }
}
