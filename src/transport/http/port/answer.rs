//! Responses to requests: texts, and streams of events.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    status.into_response()
}

/// A text of this content type.
pub(crate) fn text(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Response {
    (status, [(CONTENT_TYPE, kind)], text.into()).into_response()
}

/// A stream of events. The headers ask intermediaries not to buffer it.
pub(crate) fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let fields = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let body = Body::from_stream(events.map(Ok::<_, Infallible>));
    (fields, body).into_response()
}
