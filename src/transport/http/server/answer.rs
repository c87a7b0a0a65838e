//! The response to an accepted message.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Frame, SizeHint};

use super::inbound::Release;

/// An empty body. The accepted message is delivered when it is dropped, once hyper has written the
/// response.
struct DeliveringBody {
    _release: Release,
}

/// The response to an accepted message; without a release it was accepted before.
pub(super) fn accepted(status: StatusCode, release: Option<Release>) -> Response {
    match release {
        Some(_release) => (status, Body::new(DeliveringBody { _release })).into_response(),
        None => status.into_response(),
    }
}

impl hyper::body::Body for DeliveringBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
