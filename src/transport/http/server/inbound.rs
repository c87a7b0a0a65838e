//! Accepts a client's messages, and delivers them to the relay.
//!
//! A message is checked, counted, and delivered only once its 202 is being written: an immediate
//! answer of the agent must not arrive before the 202, because official clients fail on that.

use std::sync::Arc;

use tokio::time::{Instant, timeout};

use super::connection::{Connection, Inbound, State};
use super::repeats::id_of_post;
use super::routing::{Pending, SessionError, pending_of, session_of};
use super::turn::Turn;
use crate::jsonrpc::{Envelope, Frame, Id, IdBuf, Kind, Limits, Role};

/// The result of accepting a message.
#[derive(Debug)]
pub(super) enum Accepted {
    /// It is delivered when this is dropped.
    New(Release),
    /// It was accepted before, and is not delivered again.
    Repeated,
}

/// Why a message is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InboundError {
    /// The connection has ended.
    Gone,
    /// It is closing, and ends once the client has read the remaining messages.
    Closing,
    /// The agent reads nothing.
    Stalled,
    /// Its id is that of another request which awaits its answer.
    Reused,
    /// Its session is not right.
    Misrouted(SessionError),
}

/// A message with reserved room in the queue.
#[derive(Debug)]
pub(super) struct Release {
    connection: Arc<Connection>,
    frame: Option<Frame>,
    /// Passes to the next message when this one is delivered.
    _turn: Option<Turn>,
}

/// The kind of a message, for the records.
enum Entry {
    Request(IdBuf, Pending),
    Answer(IdBuf, u64),
    /// With the id derived from the name of its POST, if it has one.
    Notification(Option<(IdBuf, u64)>),
}

/// A message that may be accepted.
struct Checked {
    entry: Entry,
    /// The session that it names.
    session: Option<String>,
}

impl Connection {
    /// Accepts a message when it is its turn and there is room for it. `session` and `post` are the
    /// names of its session and its POST from the headers.
    pub(super) async fn accept(
        self: &Arc<Self>,
        frame: Frame,
        envelope: &Envelope,
        session: Option<&str>,
        post: Option<&str>,
        turn: Option<Turn>,
    ) -> Result<Accepted, InboundError> {
        if let Some(turn) = &turn {
            turn.wait().await;
        }
        let mut turn = turn;
        let accepted = async {
            loop {
                let room = self.has_room.notified();
                tokio::pin!(room);
                room.as_mut().enable();
                if let Some(taken) =
                    self.try_accept(&frame, envelope, (session, post), &mut turn)?
                {
                    return Ok(taken);
                }
                room.await;
            }
        };
        let result = timeout(self.limits.http_stall, accepted).await;
        result.unwrap_or(Err(InboundError::Stalled))
    }

    /// `None` while there is no room.
    fn try_accept(
        self: &Arc<Self>,
        frame: &Frame,
        envelope: &Envelope,
        headers: (Option<&str>, Option<&str>),
        turn: &mut Option<Turn>,
    ) -> Result<Option<Accepted>, InboundError> {
        let now = Instant::now();
        let mut state = self.state();
        // An accepted request must be answered, so none is accepted after the end.
        if state.is_gone() {
            return Err(InboundError::Gone);
        }
        if state.closing.is_some() {
            return Err(InboundError::Closing);
        }
        let Some(checked) = state.check(frame, envelope, headers, now)? else {
            return Ok(Some(Accepted::Repeated));
        };
        if !state.inbound.reserve(frame.len(), &self.limits) {
            return Ok(None);
        }
        state.record(checked, now);
        Ok(Some(Accepted::New(Release {
            connection: self.clone(),
            frame: Some(frame.clone()),
            _turn: turn.take(),
        })))
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
    /// Checks a message; `None` when it was accepted before.
    fn check(
        &self,
        frame: &Frame,
        envelope: &Envelope,
        (header, post): (Option<&str>, Option<&str>),
        now: Instant,
    ) -> Result<Option<Checked>, InboundError> {
        let id = envelope.id(frame).to_owned();
        let has_no_id = matches!(id.as_id(), Id::Absent | Id::Null);
        let mut named_session = None;
        let entry = match envelope.kind {
            Kind::Request | Kind::Notification => {
                let session =
                    session_of(frame, envelope, header).map_err(InboundError::Misrouted)?;
                named_session = session.as_deref().map(str::to_owned);
                if envelope.kind == Kind::Notification || has_no_id {
                    let post_id = post.and_then(id_of_post);
                    let post_id = post_id.map(|id| (id, self.repeated.hash(frame)));
                    let is_known = |(id, hash)| self.repeated.contains(Role::Call, id, hash, now);
                    if post_id
                        .as_ref()
                        .is_some_and(|(id, hash)| is_known((id, *hash)))
                    {
                        return Ok(None);
                    }
                    Entry::Notification(post_id)
                } else {
                    let hash = self.repeated.hash(frame);
                    match self.routing.pending(&id) {
                        Some(open) if open.hash == hash => return Ok(None),
                        Some(_) => return Err(InboundError::Reused),
                        None if self.repeated.contains(Role::Call, &id, hash, now) => {
                            return Ok(None);
                        }
                        None => {}
                    }
                    let pushed = self.streams.pushed();
                    let pending = pending_of(frame, envelope, session.as_deref(), pushed, hash);
                    Entry::Request(id, pending)
                }
            }
            Kind::Result | Kind::Error => {
                let awaited = self.routing.check_answer(&id, header);
                let awaited = awaited.map_err(InboundError::Misrouted)?;
                let hash = self.repeated.hash(frame);
                if !awaited && self.repeated.contains(Role::Answer, &id, hash, now) {
                    return Ok(None);
                }
                if has_no_id {
                    Entry::Notification(None)
                } else {
                    Entry::Answer(id, hash)
                }
            }
        };
        Ok(Some(Checked {
            entry,
            session: named_session,
        }))
    }

    /// Records an accepted message.
    fn record(&mut self, checked: Checked, now: Instant) {
        if let Some(session) = checked.session {
            self.streams.mark_known(&session);
        }
        match checked.entry {
            Entry::Request(id, pending) => {
                let call = Role::Call;
                self.repeated.remember(call, id.clone(), pending.hash, now);
                let entering = pending.session.clone().filter(|_| pending.enters.is_some());
                let remembered = self.routing.remember(id, pending);
                if let Some(session) = entering.filter(|_| remembered) {
                    self.streams.enter(&session);
                }
            }
            Entry::Answer(id, hash) => {
                self.routing.answered(&id);
                self.repeated.remember(Role::Answer, id, hash, now);
            }
            Entry::Notification(Some((id, hash))) => {
                self.repeated.remember(Role::Call, id, hash, now);
            }
            Entry::Notification(None) => {}
        }
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
