//! Accepts a client's messages.
//!
//! A message is checked, counted, and delivered only once its 202 is being written: an immediate
//! answer of the agent must not arrive before the 202, because official clients fail on that.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};

use hyper::StatusCode;
use tokio::time::{Instant, timeout};

use super::connection::{Connection, State};
use super::repeats::id_of_post;
use super::routing::session_of;
use crate::http::port::refusal::Refusal;
use jsonrpc::framing::Decoded;
use jsonrpc::{Envelope, Frame, Id, Kind, Role};

/// A message of a client, and what the headers of its POST say.
#[derive(Debug)]
pub(super) struct Posted<'a> {
    pub(super) frame: Frame,
    pub(super) envelope: Envelope,
    pub(super) session: Option<&'a str>,
    /// The name of the POST.
    pub(super) name: Option<&'a str>,
}

/// A message with reserved room in the queue, which is delivered when this is dropped.
#[derive(Debug)]
pub(super) struct Release {
    connection: Arc<Connection>,
    frame: Frame,
}

impl Connection {
    /// Accepts a message when there is room for it; none is returned for one that was accepted
    /// before.
    pub(super) async fn accept(
        self: &Arc<Self>,
        posted: Posted<'_>,
    ) -> Result<Option<Release>, Refusal> {
        let length = posted.frame.len();
        let recorded = poll_fn(|cx| {
            let mut state = self.state();
            // An accepted request must be answered, so none is accepted after the end.
            if state.is_gone || !ready!(self.inbound.poll_room(cx, length)) {
                return Poll::Ready(Err(Refusal::unknown_connection()));
            }
            if state.closing.is_some() {
                // Official clients close all streams when they learn that there is no connection,
                // and would miss the last messages.
                let why = "the conversation is ending";
                return Poll::Ready(Err(Refusal::unavailable(why)));
            }
            let is_new = state.record(&posted)?;
            if is_new {
                self.inbound.reserve(length);
            }
            Poll::Ready(Ok(is_new))
        });
        let recorded = timeout(self.limits.http_write_timeout, recorded).await;
        let is_new = recorded
            .unwrap_or_else(|_| Err(Refusal::unavailable("the agent reads nothing at present")))?;
        Ok(is_new.then(|| Release {
            connection: self.clone(),
            frame: posted.frame,
        }))
    }

    /// Delivers a message without checks: the first one.
    pub(super) fn deliver(&self, frame: Frame) {
        let length = frame.len();
        self.inbound.put(Ok(Decoded::Frame(frame)), length);
    }
}

impl State {
    /// Checks a message and records it; whether it is new.
    fn record(&mut self, posted: &Posted<'_>) -> Result<bool, Refusal> {
        let (frame, envelope) = (&posted.frame, &posted.envelope);
        let id = envelope.id(frame);
        let has_id = !matches!(id, Id::Absent | Id::Null);
        let (now, hash) = (Instant::now(), self.repeats.hash(frame));
        if envelope.kind.is_answer() {
            let is_awaited = self.routing.answer(id, posted.session)?;
            let id = id.to_owned();
            if !is_awaited && self.repeats.contains(Role::Answer, &id, hash, now) {
                return Ok(false);
            }
            if has_id {
                self.repeats.remember(Role::Answer, id, hash, now);
            }
            return Ok(true);
        }
        let session = session_of(frame, envelope, posted.session)?;
        let is_request = envelope.kind == Kind::Request && has_id;
        // A message without an id is remembered by the name of its POST.
        let key = match is_request {
            true => Some(id.to_owned()),
            false => posted.name.and_then(id_of_post),
        };
        if let Some(key) = &key {
            match self.routing.client_requests.get(key.as_id()) {
                Some(open) if open.hash != hash => {
                    let why = "another request with this id still awaits its answer";
                    return Err(Refusal::new(StatusCode::CONFLICT, why));
                }
                None if !self.repeats.contains(Role::Call, key, hash, now) => {}
                _ => return Ok(false),
            }
        }
        if let Some(session) = &session {
            self.streams.mark_known(session);
        }
        if let Some(key) = key {
            self.repeats.remember(Role::Call, key, hash, now);
        }
        if is_request {
            let (session, streams) = (session.as_deref(), &mut self.streams);
            self.routing
                .incoming(frame, envelope, session, hash, streams);
        }
        Ok(true)
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        let frame = self.frame.clone();
        let length = frame.len();
        self.connection
            .inbound
            .fill(Ok(Decoded::Frame(frame)), length);
    }
}
