//! One ACP connection over HTTP: the state that a client's requests share with the two halves of a
//! link.
//!
//! The client's requests come on any number of sockets and in any task, so the state is behind a
//! lock, which is held for a few steps and never over an await.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::Instant;

use super::refusal::Refusal;
use super::repeats::Repeats;
use super::routing::Routing;
use super::streams::{Delivery, Lease, Opening, Streams};
use crate::auth::Principal;
use crate::jsonrpc::{CloseReason, Frame, IdBuf, Limits};

/// How a connection's messages are distributed to streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamMode {
    /// A stream for the connection and one for each session; events have ids.
    Official,
    /// One stream for all, without ids, as on elephant.ai's server.
    Elephant,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The id by which requests name it.
    pub(super) id: String,
    /// The principal that has opened it, and alone may use it.
    pub(super) owner: Arc<Principal>,
    pub(super) mode: StreamMode,
    /// Distinguishes event ids of this connection from those of others.
    pub(super) epoch: u32,
    pub(super) limits: Arc<Limits>,
    state: Mutex<State>,
    /// Notified when there is room for another message of the client.
    pub(super) has_room: Notify,
    /// The order of its messages (see `turn`).
    pub(super) turns: Arc<Semaphore>,
}

/// The shared state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) inbound: Inbound,
    pub(super) streams: Streams,
    pub(super) routing: Routing,
    pub(super) repeated: Repeats,
    /// The request that waits for the answer to `initialize`, and its id.
    pub(super) initial: Option<(IdBuf, oneshot::Sender<Frame>)>,
    /// The relay's task, waiting for the streams to be read.
    pub(super) sender: Option<Waker>,
    /// Since when it has been waiting.
    pub(super) blocked_since: Option<Instant>,
    /// Requests that are being served.
    requests: usize,
    /// Since when there has been neither a request nor a stream.
    idle_since: Option<Instant>,
    /// The link is closing: queued messages can still be read, but no more are accepted.
    pub(super) closing: Option<CloseReason>,
    /// The link has ended.
    pub(super) ended: bool,
}

/// Messages of the client that the relay has not received yet.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    pub(super) queue: VecDeque<Frame>,
    /// Frames and bytes in the queue, and those that are about to be put there.
    pub(super) frames: usize,
    pub(super) bytes: usize,
    pub(super) receiver: Option<Waker>,
    /// How the client has left.
    pub(super) departure: Option<Departure>,
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// It closed the connection.
    Closed,
    /// It sent no request for too long, or read nothing.
    Lost(&'static str),
}

/// A request that is being served.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<Connection>);

impl Connection {
    pub(super) fn new(
        id: String,
        owner: &Arc<Principal>,
        mode: StreamMode,
        epoch: u32,
        limits: &Arc<Limits>,
    ) -> Arc<Self> {
        let now = Instant::now();
        let max_kept = match mode {
            StreamMode::Official => limits.http_replay,
            StreamMode::Elephant => 0,
        };
        Arc::new(Self {
            id,
            owner: owner.clone(),
            mode,
            epoch,
            limits: limits.clone(),
            state: Mutex::new(State {
                inbound: Inbound::default(),
                streams: Streams::new(max_kept, now),
                routing: Routing::new(limits.clone()),
                repeated: Repeats::default(),
                initial: None,
                sender: None,
                blocked_since: None,
                requests: 0,
                idle_since: Some(now),
                closing: None,
                ended: false,
            }),
            has_room: Notify::new(),
            turns: Arc::new(Semaphore::new(1)),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another task leaves the state consistent.
        self.state.lock()
    }

    /// Counts a request until the result is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        let mut state = self.state();
        state.requests += 1;
        state.idle_since = None;
        ActiveRequest(self.clone())
    }

    /// Waits for the answer to `initialize`; `None` when there will be none.
    pub(super) fn initial(&self, id: IdBuf) -> impl Future<Output = Option<Frame>> + Send + use<> {
        let (tx, rx) = oneshot::channel();
        self.state().initial = Some((id, tx));
        async move { rx.await.ok() }
    }

    /// Opens a stream.
    pub(super) fn open(&self, session: Option<&str>, how: Opening) -> Result<Lease, Refusal> {
        let now = Instant::now();
        let mut state = self.state();
        if state.is_gone() {
            return Err(Refusal::unknown_connection());
        }
        let lease = state.streams.open(session, how, &self.limits, now)?;
        state.idle_since = None;
        Ok(lease)
    }

    /// The next messages of a stream, as many as `give` accepts (see [`Streams::take`]).
    pub(super) fn poll_take(
        &self,
        lease: Lease,
        cx: &Context<'_>,
        mut give: impl FnMut(usize, u64, &Frame) -> bool,
    ) -> Poll<Delivery> {
        let mut state = self.state();
        let State {
            streams,
            routing,
            repeated,
            ..
        } = &mut *state;
        let given = streams.take(lease, cx, Instant::now(), |waiting, number, frame| {
            if self.mode == StreamMode::Elephant
                && let Some(id) = routing.delivered(frame)
            {
                repeated.forget(id);
            }
            give(waiting, number, frame)
        });
        if matches!(given, Poll::Ready(Delivery::Some)) {
            state.wake_sender(&self.limits);
        }
        given
    }

    /// The number of the last message sent on a stream, 0 before the first; `None` when the stream
    /// was taken over.
    pub(super) fn last_sent(&self, lease: Lease) -> Option<u64> {
        self.state().streams.last_sent(lease)
    }

    /// Why the stream ends, if it ends because the link is closing.
    pub(super) fn close_reason(&self, lease: Lease) -> Option<CloseReason> {
        let state = self.state();
        let holds = state.streams.last_sent(lease).is_some();
        state.closing.filter(|_| holds)
    }

    /// The receiver of a stream was dropped.
    pub(super) fn release(&self, lease: Lease) {
        let now = Instant::now();
        let mut state = self.state();
        state.streams.release(lease, now);
        state.update_idle(now);
        // A closing link waits for it.
        if let Some(waker) = state.sender.take() {
            waker.wake();
        }
    }

    /// The client has left.
    pub(super) fn depart(&self, how: Departure) {
        self.state().depart(how);
        self.has_room.notify_waiters();
    }

    /// The link has ended: no messages are sent or received any more.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.initial = None;
        state.streams.drop_all();
        drop(state);
        self.has_room.notify_waiters();
    }

    /// Applies the time limits; `true` when the connection is to be removed.
    pub(super) fn expire(&self, now: Instant) -> bool {
        let limits = &self.limits;
        let mut state = self.state();
        if state.streams.expire(limits, now) {
            state.update_idle(now);
        }
        let is_idle = state
            .idle_since
            .is_some_and(|at| now - at >= limits.http_grace);
        let taken_at = state.streams.taken_at;
        let is_stuck = |at: Instant| now - at.max(taken_at) >= limits.http_write_timeout;
        if is_idle {
            state.depart(Departure::Lost("it sent no request for too long"));
        } else if state.blocked_since.is_some_and(is_stuck) {
            state.depart(Departure::Lost("it did not read its messages"));
        }
        let ended = state.is_gone();
        drop(state);
        if ended {
            self.has_room.notify_waiters();
        }
        ended
    }
}

impl State {
    /// Whether the client has left or the link has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.ended || self.inbound.departure.is_some()
    }

    fn depart(&mut self, how: Departure) {
        if self.is_gone() {
            return;
        }
        self.inbound.departure = Some(how);
        self.initial = None;
        self.streams.drop_all();
        for waker in [self.inbound.receiver.take(), self.sender.take()] {
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn wake_sender(&mut self, limits: &Limits) {
        if self.streams.waiting() < limits.http_waiting
            && let Some(waker) = self.sender.take()
        {
            self.blocked_since = None;
            waker.wake();
        }
    }

    fn update_idle(&mut self, now: Instant) {
        if self.requests == 0 && self.streams.open_count() == 0 {
            self.idle_since.get_or_insert(now);
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        state.update_idle(Instant::now());
    }
}
