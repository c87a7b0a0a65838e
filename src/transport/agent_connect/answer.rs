//! HTTP responses of the Agent Connect server. Those common to all ports are in
//! `http::port::answer`.

use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_LOCATION, HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::agent_connect::fault::Fault;
use crate::transport::http::port::answer::{self, Telling};
use crate::transport::http::port::refuse::{Refusal, Why};

pub(super) use crate::transport::http::port::answer::empty;

/// A response.
pub(super) type Answer = answer::Answer<Events>;

/// A body of events, sent as they come.
#[derive(Debug)]
pub(in crate::transport) struct Events(mpsc::Receiver<Bytes>);

/// A response with a JSON value.
pub(super) fn json(value: &Value) -> Answer {
    told(StatusCode::OK, value)
}

/// The same response, with the URL of the resource (RFC 9110, 8.7).
pub(super) fn located(mut answer: Answer, place: &str) -> Answer {
    if let Ok(place) = HeaderValue::from_str(place) {
        answer.headers_mut().insert(CONTENT_LOCATION, place);
    }
    answer
}

/// A response with a stream of events.
pub(super) fn events(events: mpsc::Receiver<Bytes>) -> Answer {
    answer::events(Events(events))
}

/// An error response: its message, as a JSON string.
pub(super) fn fault(fault: &Fault) -> Answer {
    let status = StatusCode::from_u16(fault.status);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = told(status, &Value::from(&*fault.what));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

/// A rejection by the port, in the same form.
pub(super) fn refusal(refusal: Refusal) -> Answer {
    let mut fields = HeaderMap::new();
    refusal.write_fields(&mut fields);
    let what = match refusal.why {
        Why::Text(text) => Value::from(text.into_owned()),
        Why::Error(_) => Value::from("refused"),
    };
    let mut answer = told(refusal.status, &what);
    answer.headers_mut().extend(fields);
    answer
}

/// The path takes other methods.
pub(super) fn method(allowed: &'static str) -> Answer {
    let what = Value::from(format!("this path takes {allowed}"));
    let mut answer = told(StatusCode::METHOD_NOT_ALLOWED, &what);
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn told(status: StatusCode, value: &Value) -> Answer {
    answer::text(status, "application/json", value.to_string())
}

impl Telling for Events {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(cx)
    }
}
