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
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::repeated::Repeated;
use super::routing::Routing;
use super::streams::{Closed, Given, Lease, Opening, Streams};
use super::turn::Turns;
use crate::auth::Principal;
use crate::jsonrpc::{Farewell, Frame, IdBuf, Limits};
use crate::transport::Worker;

/// How a connection's messages are distributed to streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
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
    pub(super) manner: Manner,
    /// Distinguishes event ids of this connection from those of others.
    pub(super) epoch: u32,
    pub(super) limits: Arc<Limits>,
    /// The worker that its tasks run on.
    pub(super) worker: Worker,
    state: Mutex<State>,
    /// Notified when there is room for another message of the client.
    pub(super) room: Notify,
}

/// The shared state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) inbound: Inbound,
    pub(super) streams: Streams,
    pub(super) routing: Routing,
    pub(super) repeated: Repeated,
    pub(super) turns: Turns,
    /// The request that waits for the answer to `initialize`, and its id.
    pub(super) initial: Option<(IdBuf, oneshot::Sender<Frame>)>,
    /// The relay's task, waiting for the streams to be read.
    pub(super) mouth: Option<Waker>,
    /// Since when it has been waiting.
    pub(super) blocked: Option<Instant>,
    /// Requests that are being served.
    requests: usize,
    /// Since when there has been neither a request nor a stream.
    idle: Option<Instant>,
    /// The link is closing: queued messages can still be read, but no more are accepted.
    pub(super) closing: Option<Farewell>,
    /// The link has ended.
    pub(super) over: bool,
}

/// Messages of the client that the relay has not received yet.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    pub(super) queue: VecDeque<Frame>,
    /// Frames and bytes in the queue, and those that are about to be put there.
    pub(super) frames: usize,
    pub(super) bytes: usize,
    pub(super) ear: Option<Waker>,
    /// How the client has left.
    pub(super) left: Option<Left>,
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It closed the connection.
    Politely,
    /// It sent no request for too long, or read nothing.
    Lost(&'static str),
}

/// A request that is being served.
#[derive(Debug)]
pub(super) struct Serving(Arc<Connection>);

impl Connection {
    pub(super) fn new(
        id: String,
        owner: &Arc<Principal>,
        manner: Manner,
        epoch: u32,
        limits: &Arc<Limits>,
    ) -> Arc<Self> {
        let now = Instant::now();
        let keep = match manner {
            Manner::Official => limits.http_replay,
            Manner::Elephant => 0,
        };
        Arc::new(Self {
            id,
            owner: owner.clone(),
            manner,
            epoch,
            limits: limits.clone(),
            worker: Worker::here(),
            state: Mutex::new(State {
                inbound: Inbound::default(),
                streams: Streams::new(keep, now),
                routing: Routing::new(limits.clone()),
                repeated: Repeated::default(),
                turns: Turns::default(),
                initial: None,
                mouth: None,
                blocked: None,
                requests: 0,
                idle: Some(now),
                closing: None,
                over: false,
            }),
            room: Notify::new(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another task leaves the state consistent.
        self.state.lock()
    }

    /// Counts a request until the result is dropped.
    pub(super) fn serve(self: &Arc<Self>) -> Serving {
        let mut state = self.state();
        state.requests += 1;
        state.idle = None;
        Serving(self.clone())
    }

    /// Waits for the answer to `initialize`; `None` when there will be none.
    pub(super) fn initial(&self, id: IdBuf) -> impl Future<Output = Option<Frame>> + Send + use<> {
        let (tx, rx) = oneshot::channel();
        self.state().initial = Some((id, tx));
        async move { rx.await.ok() }
    }

    /// Opens a stream; `None` when the connection has ended.
    pub(super) fn open(
        &self,
        session: Option<&str>,
        how: Opening,
    ) -> Option<Result<Lease, Closed>> {
        let now = Instant::now();
        let mut state = self.state();
        if state.is_gone() {
            return None;
        }
        let opened = state.streams.open(session, how, &self.limits, now);
        if opened.is_ok() {
            state.idle = None;
        }
        Some(opened)
    }

    /// The next messages of a stream, as many as `give` accepts (see [`Streams::take`]).
    pub(super) fn poll_take(
        &self,
        lease: Lease,
        cx: &Context<'_>,
        mut give: impl FnMut(usize, u64, &Frame) -> bool,
    ) -> Poll<Given> {
        let mut state = self.state();
        let State {
            streams,
            routing,
            repeated,
            ..
        } = &mut *state;
        let given = streams.take(lease, cx, Instant::now(), |waiting, number, frame| {
            if self.manner == Manner::Elephant
                && let Some(id) = routing.delivered(frame)
            {
                repeated.forget(id);
            }
            give(waiting, number, frame)
        });
        if matches!(given, Poll::Ready(Given::Some)) {
            state.wake_mouth(&self.limits);
        }
        given
    }

    /// The number of the last message sent on a stream, 0 before the first; `None` when the stream
    /// was taken over.
    pub(super) fn given(&self, lease: Lease) -> Option<u64> {
        self.state().streams.given(lease)
    }

    /// Why the stream ends, if it ends because the link is closing.
    pub(super) fn farewell(&self, lease: Lease) -> Option<Farewell> {
        let state = self.state();
        let holds = state.streams.given(lease).is_some();
        state.closing.filter(|_| holds)
    }

    /// The receiver of a stream was dropped.
    pub(super) fn release(&self, lease: Lease) {
        let now = Instant::now();
        let mut state = self.state();
        state.streams.release(lease, now);
        state.mind_idleness(now);
        // A closing link waits for it.
        if let Some(waker) = state.mouth.take() {
            waker.wake();
        }
    }

    /// The client has left.
    pub(super) fn leave(&self, how: Left) {
        self.state().leave(how);
        self.room.notify_waiters();
    }

    /// The link has ended: no messages are sent or received any more.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.over = true;
        state.initial = None;
        state.streams.drop_all();
        drop(state);
        self.room.notify_waiters();
    }

    /// Applies the time limits; `true` when the connection is to be removed.
    pub(super) fn mend(&self, now: Instant) -> bool {
        let limits = &self.limits;
        let mut state = self.state();
        if state.streams.mend(limits, now) {
            state.mind_idleness(now);
        }
        let idle = state.idle.is_some_and(|at| now - at >= limits.http_grace);
        let taken_at = state.streams.taken_at;
        let stuck = |at: Instant| now - at.max(taken_at) >= limits.http_stall;
        if idle {
            state.leave(Left::Lost("it sent no request for too long"));
        } else if state.blocked.is_some_and(stuck) {
            state.leave(Left::Lost("it did not read its messages"));
        }
        let gone = state.is_gone();
        drop(state);
        if gone {
            self.room.notify_waiters();
        }
        gone
    }
}

impl State {
    /// Whether the client has left or the link has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.over || self.inbound.left.is_some()
    }

    fn leave(&mut self, how: Left) {
        if self.is_gone() {
            return;
        }
        self.inbound.left = Some(how);
        self.initial = None;
        self.streams.drop_all();
        for waker in [self.inbound.ear.take(), self.mouth.take()] {
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn wake_mouth(&mut self, limits: &Limits) {
        if self.streams.waiting() < limits.http_waiting
            && let Some(waker) = self.mouth.take()
        {
            self.blocked = None;
            waker.wake();
        }
    }

    fn mind_idleness(&mut self, now: Instant) {
        if self.requests == 0 && self.streams.open_count() == 0 {
            self.idle.get_or_insert(now);
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        state.mind_idleness(Instant::now());
    }
}
