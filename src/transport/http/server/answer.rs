//! What is answered to a request of a client of ACP.
//!
//! Not here: a stream's events (see `events`), and answers that are alike at every port (see
//! `port::answer`).

use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::StatusCode;

use super::events::Events;
use super::inbound::Release;
use crate::transport::http::names;
use crate::transport::http::port::answer::{self, Content, Telling};

pub(super) use crate::transport::http::port::answer::{empty, text};

/// An answer to a request.
pub(super) type Answer = answer::Answer<Behind>;

/// What a body is that is no text.
#[derive(Debug)]
pub(in crate::transport::http) struct Behind(What);

#[derive(Debug)]
enum What {
    /// None; the message that is answered is heard once the server is done with the answer.
    Accepted(#[expect(dead_code, reason = "it acts when it is dropped")] Release),
    /// Events, without an end in sight.
    Events(Box<Events>),
}

/// A message was taken.
pub(super) fn accepted(status: StatusCode, release: Release) -> Answer {
    answer::of(status, Content::Told(Behind(What::Accepted(release))))
}

/// A stream.
pub(super) fn events(events: Events) -> Answer {
    let interval = names::millis(events.interval());
    let mut answer = answer::events(Behind(What::Events(Box::new(events))));
    answer.headers_mut().insert(names::KEEPALIVE, interval);
    answer
}

impl Telling for Behind {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.0 {
            What::Accepted(_) => Poll::Ready(None),
            What::Events(events) => events.poll(cx),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self.0, What::Accepted(_))
    }
}
