//! Responses to requests: their bodies, and the headers they have in common.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame as Part, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// A response to a request.
pub(in crate::transport) type Answer<E> = Response<Content<E>>;

/// The body of a response.
#[derive(Debug)]
pub(in crate::transport) enum Content<E> {
    /// No body.
    Nothing,
    /// A text.
    Text(Bytes),
    /// A body produced over time.
    Stream(E),
}

/// A body that is produced over time.
pub(in crate::transport) trait BodyStream: Send + Unpin {
    /// The next part; `None` at the end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
    /// Whether it is known in advance that it is empty.
    fn is_empty(&self) -> bool {
        false
    }
}

/// A response without a body.
pub(in crate::transport) fn empty<E>(status: StatusCode) -> Answer<E> {
    response(status, Content::Nothing)
}

/// A text of this content type.
pub(in crate::transport) fn text<E>(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Answer<E> {
    let mut answer = response(status, Content::Text(text.into()));
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// A stream of events. The headers ask intermediaries not to buffer it.
pub(in crate::transport) fn events<E>(events: E) -> Answer<E> {
    let mut answer = response(StatusCode::OK, Content::Stream(events));
    let fields = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in fields {
        let value = HeaderValue::from_static(value);
        answer.headers_mut().insert(name, value);
    }
    answer
}

pub(in crate::transport) fn response<E>(status: StatusCode, content: Content<E>) -> Answer<E> {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    answer
}

impl<E: BodyStream> Body for Content<E> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Part<Bytes>, Infallible>>> {
        let part = |bytes| Ok(Part::data(bytes));
        match &mut *self {
            Self::Nothing => Poll::Ready(None),
            Self::Text(text) => {
                let text = std::mem::take(text);
                Poll::Ready((!text.is_empty()).then(|| part(text)))
            }
            Self::Stream(stream) => Poll::Ready(ready!(stream.poll(cx)).map(part)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text(text) => text.is_empty(),
            Self::Stream(stream) => stream.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Nothing => SizeHint::with_exact(0),
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
            Self::Stream(stream) if stream.is_empty() => SizeHint::with_exact(0),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
