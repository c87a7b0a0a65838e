//! One ACP connection over HTTP: what the requests of a client and the two halves of a link share.
//!
//! The client's requests come on any number of sockets and in any task, so the state is behind a
//! lock, which is held for a few steps and never over an await. Not here: HTTP (see `post`,
//! `events`), the link's halves (see `link`), and which of a client's messages are taken (see
//! `inbound`).

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

/// How a connection's messages are told apart on its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// A stream for the connection and one for each session; events have ids.
    Official,
    /// One stream for all, without ids, as elephant.ai's server has it.
    Elephant,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The name it is asked for by.
    pub(super) id: String,
    /// Who has opened it, and alone may use it.
    pub(super) owner: Arc<Principal>,
    pub(super) manner: Manner,
    /// Tells event ids of this connection from those of others.
    pub(super) epoch: u32,
    pub(super) limits: Arc<Limits>,
    /// Where it is at home.
    pub(super) worker: Worker,
    state: Mutex<State>,
    /// Told when there is room for another message of the client.
    pub(super) room: Notify,
}

/// What is shared.
#[derive(Debug)]
pub(super) struct State {
    pub(super) inbound: Inbound,
    pub(super) streams: Streams,
    pub(super) routing: Routing,
    pub(super) repeated: Repeated,
    pub(super) turns: Turns,
    /// Who waits for the answer to `initialize`, and under which id.
    pub(super) initial: Option<(IdBuf, oneshot::Sender<Frame>)>,
    /// The relay's task, waiting for the streams to be read.
    pub(super) mouth: Option<Waker>,
    /// Since when it has had to wait.
    pub(super) blocked: Option<Instant>,
    /// Requests that are being served.
    requests: usize,
    /// Since when there has been neither a request nor a stream.
    idle: Option<Instant>,
    /// Leave is being taken: what waits can still be read, but nothing more is heard.
    pub(super) closing: Option<Farewell>,
    /// The link is gone.
    pub(super) over: bool,
}

/// What the client has said and the relay has not heard yet.
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
    /// It said so.
    Politely,
    /// It was not heard of for too long, or took nothing.
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
        // A panic in another task has left nothing half done that the next could not live with.
        self.state.lock()
    }

    /// A request is being served until what is returned is dropped.
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

    /// Opens a stream; `None` when the connection is over.
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

    /// The next messages of a stream, as many as `give` wants (see [`Streams::take`]).
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

    /// The number of the message that a stream gave last, 0 before the first; `None` when the
    /// stream is another's now.
    pub(super) fn given(&self, lease: Lease) -> Option<u64> {
        self.state().streams.given(lease)
    }

    /// Why the stream ends, if it ends because leave is taken of the client.
    pub(super) fn farewell(&self, lease: Lease) -> Option<Farewell> {
        let state = self.state();
        let holds = state.streams.given(lease).is_some();
        state.closing.filter(|_| holds)
    }

    /// A stream's receiver is gone.
    pub(super) fn release(&self, lease: Lease) {
        let now = Instant::now();
        let mut state = self.state();
        state.streams.release(lease, now);
        state.mind_idleness(now);
        // Whoever takes leave waits for it.
        if let Some(waker) = state.mouth.take() {
            waker.wake();
        }
    }

    /// The client has left.
    pub(super) fn leave(&self, how: Left) {
        self.state().leave(how);
        self.room.notify_waiters();
    }

    /// The link is gone: nothing is said or heard any more.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.over = true;
        state.initial = None;
        state.streams.drop_all();
        drop(state);
        self.room.notify_waiters();
    }

    /// Looks after what only time tells; `true` when the client is to be forgotten.
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
            state.leave(Left::Lost("it was not heard of for too long"));
        } else if state.blocked.is_some_and(stuck) {
            state.leave(Left::Lost("it did not take what was said to it"));
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
    /// Whether nobody is at the other end, or nobody at ours.
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
