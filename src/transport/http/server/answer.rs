//! Responses to ACP requests, beyond those of `port::answer`.

use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::StatusCode;

use super::events::EventStream;
use super::inbound::Release;
use crate::transport::http::names;
use crate::transport::http::port::answer::{self, BodyStream, Content};

pub(super) use crate::transport::http::port::answer::{empty, text};

/// A response to a request.
pub(super) type Answer = answer::Answer<ResponseStream>;

/// A response body that is not a text.
#[derive(Debug)]
pub(in crate::transport::http) struct ResponseStream(Inner);

#[derive(Debug)]
enum Inner {
    /// Empty; the accepted message is delivered once hyper has written the response.
    Accepted(#[expect(dead_code, reason = "it acts when it is dropped")] Release),
    /// Events, until the stream ends.
    Events(Box<EventStream>),
}

/// The response to an accepted message.
pub(super) fn accepted(status: StatusCode, release: Release) -> Answer {
    answer::response(
        status,
        Content::Stream(ResponseStream(Inner::Accepted(release))),
    )
}

/// A stream of events.
pub(super) fn events(events: EventStream) -> Answer {
    let interval = names::millis(events.interval());
    let mut answer = answer::events(ResponseStream(Inner::Events(Box::new(events))));
    answer.headers_mut().insert(names::KEEPALIVE, interval);
    answer
}

impl BodyStream for ResponseStream {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.0 {
            Inner::Accepted(_) => Poll::Ready(None),
            Inner::Events(events) => events.poll(cx),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self.0, Inner::Accepted(_))
    }
}
