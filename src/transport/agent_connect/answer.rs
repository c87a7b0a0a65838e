//! What is answered to a request.
//!
//! Not here: how a fault comes about (see `agent_connect::fault`).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::agent_connect::fault::Fault;

/// An answer.
pub(super) type Answer = Response<Content>;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Content {
    /// None, or a text.
    Text(Bytes),
    /// Events, as they come.
    Events(mpsc::Receiver<Bytes>),
}

/// Nothing but a status.
pub(super) fn empty(status: StatusCode) -> Answer {
    of(status, Content::Text(Bytes::new()))
}

/// A JSON value.
pub(super) fn json(value: &Value) -> Answer {
    told(StatusCode::OK, value)
}

/// Events.
pub(super) fn events(events: mpsc::Receiver<Bytes>) -> Answer {
    let mut answer = of(StatusCode::OK, Content::Events(events));
    for (name, value) in [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// A refusal: its sentence, as a JSON string.
pub(super) fn refusal(fault: &Fault) -> Answer {
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

/// Other methods are for this path.
pub(super) fn method(allowed: &'static str) -> Answer {
    let what = Value::from(format!("this path takes {allowed}"));
    let mut answer = told(StatusCode::METHOD_NOT_ALLOWED, &what);
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn told(status: StatusCode, value: &Value) -> Answer {
    let mut answer = of(status, Content::Text(value.to_string().into()));
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

fn of(status: StatusCode, content: Content) -> Answer {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    answer
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Text(text) => {
                let text = std::mem::take(text);
                Poll::Ready((!text.is_empty()).then(|| Ok(Frame::data(text))))
            }
            Self::Events(events) => {
                Poll::Ready(ready!(events.poll_recv(cx)).map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
