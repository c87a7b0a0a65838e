//! What is answered to a request.
//!
//! Not here: why something is refused (see `refuse`), and a stream's events (see `events`).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame as Part, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::events::{Events, part};
use super::inbound::Release;

/// An answer to a request.
pub(super) type Answer = Response<Content>;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Content {
    /// None.
    Nothing,
    /// A text.
    Text(Bytes),
    /// None; the message that is answered is heard once the server is done with the answer.
    Accepted(#[expect(dead_code, reason = "it acts when it is dropped")] Release),
    /// Events, without an end in sight.
    Events(Box<Events>),
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Answer {
    of(status, Content::Nothing)
}

/// A message was taken.
pub(super) fn accepted(status: StatusCode, release: Release) -> Answer {
    of(status, Content::Accepted(release))
}

/// A text of this type.
pub(super) fn text(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = of(status, Content::Text(text.into()));
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// A stream. What stands in between is asked not to hold its events back.
pub(super) fn events(events: Events) -> Answer {
    let mut answer = of(StatusCode::OK, Content::Events(Box::new(events)));
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
    ) -> Poll<Option<Result<Part<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Nothing | Self::Accepted(_) => Poll::Ready(None),
            Self::Text(text) => {
                let text = std::mem::take(text);
                Poll::Ready((!text.is_empty()).then(|| part(text)))
            }
            Self::Events(events) => Poll::Ready(ready!(events.poll(cx)).map(part)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Nothing | Self::Accepted(_) => true,
            Self::Text(text) => text.is_empty(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Nothing | Self::Accepted(_) => SizeHint::with_exact(0),
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
