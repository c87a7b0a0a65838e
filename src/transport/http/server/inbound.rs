//! Accepts a client's messages, and delivers them to the relay.
//!
//! A message is checked, counted, and delivered only once its 202 is being written: an immediate
//! answer of the agent must not arrive before the 202, because official clients fail on that.

use std::sync::Arc;

use hyper::StatusCode;
use tokio::time::{Instant, timeout};

use super::connection::{Connection, Inbound, State};
use super::refusal::Refusal;
use super::repeats::id_of_post;
use super::routing::{pending_of, session_of};
use super::turn::Turn;
use crate::jsonrpc::{Envelope, Frame, Id, Kind, Limits, Role};

/// Whether there is room for a message in the queue, and then whether it is new, or was accepted
/// before.
type Recorded = Option<bool>;

/// A message with reserved room in the queue.
#[derive(Debug)]
pub(super) struct Release {
    connection: Arc<Connection>,
    frame: Option<Frame>,
    /// Passes to the next message when this one is delivered.
    _turn: Option<Turn>,
}

impl Connection {
    /// Accepts a message when it is its turn and there is room for it. `session` and `post` are the
    /// names of its session and its POST from the headers. It is delivered when the result is
    /// dropped; one that was accepted before has none, and is not delivered again.
    pub(super) async fn accept(
        self: &Arc<Self>,
        frame: Frame,
        envelope: &Envelope,
        session: Option<&str>,
        post: Option<&str>,
        mut turn: Option<Turn>,
    ) -> Result<Option<Release>, Refusal> {
        if let Some(turn) = &mut turn {
            turn.wait().await;
        }
        let recorded = async {
            loop {
                let room = self.has_room.notified();
                tokio::pin!(room);
                room.as_mut().enable();
                if let Some(is_new) = self.record(&frame, envelope, session, post)? {
                    return Ok(is_new);
                }
                room.await;
            }
        };
        let recorded = timeout(self.limits.http_write_timeout, recorded).await;
        let is_new = recorded
            .unwrap_or_else(|_| Err(Refusal::unavailable("the agent reads nothing at present")))?;
        Ok(is_new.then(|| Release {
            connection: self.clone(),
            frame: Some(frame),
            _turn: turn,
        }))
    }

    fn record(
        &self,
        frame: &Frame,
        envelope: &Envelope,
        session: Option<&str>,
        post: Option<&str>,
    ) -> Result<Recorded, Refusal> {
        let mut state = self.state();
        // An accepted request must be answered, so none is accepted after the end.
        if state.is_gone() {
            return Err(Refusal::unknown_connection());
        }
        if state.closing.is_some() {
            // Official clients close all streams when they learn that there is no connection, and
            // would miss the last messages.
            return Err(Refusal::unavailable("the conversation is ending"));
        }
        state.record(frame, envelope, session, post, &self.limits)
    }

    /// Delivers a message without checks: the first one.
    pub(super) fn deliver(self: &Arc<Self>, frame: Frame) {
        let mut state = self.state();
        state.inbound.frames += 1;
        state.inbound.bytes += frame.len();
        drop(state);
        drop(Release {
            connection: self.clone(),
            frame: Some(frame),
            _turn: None,
        });
    }
}

impl State {
    /// Checks a message and records it. `header` and `post` name its session and its POST.
    fn record(
        &mut self,
        frame: &Frame,
        envelope: &Envelope,
        header: Option<&str>,
        post: Option<&str>,
        limits: &Limits,
    ) -> Result<Recorded, Refusal> {
        let now = Instant::now();
        let id = envelope.id(frame).to_owned();
        let has_id = !matches!(id.as_id(), Id::Absent | Id::Null);
        match envelope.kind {
            Kind::Request | Kind::Notification => {
                let session = session_of(frame, envelope, header).map_err(Refusal::bad_request)?;
                let is_request = envelope.kind == Kind::Request && has_id;
                // A message without an id is remembered by the name of its POST.
                let key = if is_request {
                    Some(id)
                } else {
                    post.and_then(id_of_post)
                };
                let key = key.map(|id| (id, self.repeated.hash(frame)));
                if let Some((id, hash)) = &key {
                    match self.routing.pending(id) {
                        Some(open) if open.hash != *hash => {
                            let why = "another request with this id still awaits its answer";
                            return Err(Refusal::new(StatusCode::CONFLICT, why));
                        }
                        Some(_) => return Ok(Some(false)),
                        None if self.repeated.contains(Role::Call, id, *hash, now) => {
                            return Ok(Some(false));
                        }
                        None => {}
                    }
                }
                if !self.inbound.reserve(frame.len(), limits) {
                    return Ok(None);
                }
                if let Some(session) = &session {
                    self.streams.mark_known(session);
                }
                let Some((id, hash)) = key else {
                    return Ok(Some(true));
                };
                self.repeated.remember(Role::Call, id.clone(), hash, now);
                if is_request {
                    let pushed = self.streams.pushed();
                    let pending = pending_of(frame, envelope, session.as_deref(), pushed, hash);
                    let enters = pending.enters.is_some();
                    let remembered = self.routing.remember(id, pending);
                    if let Some(session) = session.filter(|_| enters && remembered) {
                        self.streams.enter(&session);
                    }
                }
            }
            Kind::Result | Kind::Error => {
                let awaited = self.routing.check_answer(&id, header);
                let awaited = awaited.map_err(Refusal::bad_request)?;
                let hash = self.repeated.hash(frame);
                if !awaited && self.repeated.contains(Role::Answer, &id, hash, now) {
                    return Ok(Some(false));
                }
                if !self.inbound.reserve(frame.len(), limits) {
                    return Ok(None);
                }
                if has_id {
                    self.routing.answered(&id);
                    self.repeated.remember(Role::Answer, id, hash, now);
                }
            }
        }
        Ok(Some(true))
    }
}

impl Inbound {
    /// Counts a message of that length, if there is room for it.
    fn reserve(&mut self, length: usize, limits: &Limits) -> bool {
        let fits = self.bytes + length <= limits.queue_bytes && self.frames < limits.queue_frames;
        // A single message is accepted, however long it is.
        if self.frames > 0 && !fits {
            return false;
        }
        self.frames += 1;
        self.bytes += length;
        true
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        let Some(frame) = self.frame.take() else {
            return;
        };
        let mut state = self.connection.state();
        state.inbound.queue.push_back(frame);
        if let Some(waker) = state.inbound.receiver.take() {
            waker.wake();
        }
    }
}
