//! One ACP connection over HTTP: the state that a client's requests share with the two halves of a
//! link.
//!
//! The client's requests come on any number of sockets and in any task, so the state is behind a
//! lock, which is held for a few steps and never over an await.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::repeats::Repeats;
use super::routing::Routing;
use super::streams::{Lease, Opening, Streams};
use crate::LinkError;
use crate::http::port::refusal::Refusal;
use crate::http::queue::{Queue, Received};
use auth::Principal;
use jsonrpc::{CloseReason, Frame, IdBuf, Limits};
use panics::SharedMutex;

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
    pub(super) limits: Arc<Limits>,
    /// Messages of the client that the relay has not received yet.
    pub(super) inbound: Arc<Queue<Received>>,
    /// The order of its messages (see `post`).
    pub(super) turns: Arc<Semaphore>,
    state: Mutex<State>,
}

/// The shared state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) streams: Streams,
    pub(super) routing: Routing,
    pub(super) repeats: Repeats,
    /// The request that waits for the answer to `initialize`, and its id.
    pub(super) initial: Option<(IdBuf, oneshot::Sender<Frame>)>,
    /// The relay's task, waiting for the streams to be read, and since when.
    pub(super) sender: Option<(Waker, Instant)>,
    /// Requests that are being served, streams included.
    requests: usize,
    /// Since when there has been none.
    idle_since: Option<Instant>,
    /// The link is closing: queued messages can still be read, but no more are accepted.
    pub(super) closing: Option<CloseReason>,
    /// The client has left or the link has ended: no messages are sent or received any more.
    pub(super) is_gone: bool,
}

/// A request that is being served.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<Connection>);

impl Connection {
    fn new(
        id: String,
        owner: &Arc<Principal>,
        mode: StreamMode,
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
            limits: limits.clone(),
            inbound: Arc::new(Queue::new(limits.queue_frames, limits.queue_bytes)),
            turns: Arc::new(Semaphore::new(1)),
            state: Mutex::new(State {
                streams: Streams::new(max_kept, now),
                routing: Routing::new(limits.clone()),
                repeats: Repeats::default(),
                initial: None,
                sender: None,
                requests: 0,
                idle_since: Some(now),
                closing: None,
                is_gone: false,
            }),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The part of its id by which its event ids differ from those of others.
    pub(super) fn epoch(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }

    /// Counts a request until the result is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        let mut state = self.state();
        state.requests += 1;
        state.idle_since = None;
        ActiveRequest(self.clone())
    }

    /// Opens a stream.
    pub(super) fn open(&self, session: &str, how: Opening) -> Result<Lease, Refusal> {
        let mut state = self.state();
        if state.is_gone {
            return Err(Refusal::unknown_connection());
        }
        state.streams.open(session, how, &self.limits)
    }

    /// The next messages of a stream, as many as `give` accepts (see [`Streams::poll_take`]).
    pub(super) fn poll_take(
        &self,
        lease: &Lease,
        cx: &Context<'_>,
        mut give: impl FnMut(u64, &Frame) -> bool,
    ) -> Poll<bool> {
        let mut state = self.state();
        let state = &mut *state;
        let taken = state.streams.poll_take(lease, cx, |number, frame, frees| {
            if let Some(id) = frees {
                state.repeats.forget(id);
            }
            give(number, frame)
        });
        if state.streams.waiting < self.limits.http_waiting {
            state.wake_sender();
        }
        taken
    }

    /// The receiver of a stream was dropped.
    pub(super) fn release(&self, lease: &Lease) {
        let mut state = self.state();
        state.streams.release(lease);
        // A closing link waits for it.
        state.wake_sender();
    }

    /// The client has left: it closed the connection, or is lost for this reason.
    pub(super) fn depart(&self, lost: Option<&'static str>) {
        let last = lost.map(|why| {
            Err(LinkError::Io {
                context: "waiting for the client",
                source: io::Error::new(io::ErrorKind::TimedOut, why),
            })
        });
        self.inbound.end(last);
        self.state().end();
    }

    /// Applies the time limits; `true` when the connection is to be removed.
    fn expire(&self, now: Instant) -> bool {
        let limits = &self.limits;
        let mut state = self.state();
        state.streams.redirect(limits, now);
        let taken_at = state.streams.taken_at;
        let blocked = state.sender.as_ref();
        let lost = if state
            .idle_since
            .is_some_and(|at| now - at >= limits.http_grace)
        {
            Some("it sent no request for too long")
        } else if blocked
            .is_some_and(|(_, at)| now - taken_at.max(*at) >= limits.http_write_timeout)
        {
            Some("it did not read its messages")
        } else {
            None
        };
        let is_gone = state.is_gone;
        drop(state);
        if lost.is_some() {
            self.depart(lost);
        }
        lost.is_some() || is_gone
    }
}

impl State {
    /// No messages are sent or received any more.
    pub(super) fn end(&mut self) {
        self.is_gone = true;
        self.initial = None;
        self.streams.drop_all();
        self.wake_sender();
    }

    fn wake_sender(&mut self) {
        if let Some((waker, _)) = self.sender.take() {
            waker.wake();
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        if state.requests == 0 {
            state.idle_since = Some(Instant::now());
        }
    }
}

/// The live connections of a listener, by their ids.
#[derive(Debug, Default)]
pub(super) struct Connections {
    live: SharedMutex<HashMap<String, Arc<Connection>>>,
    /// Notified when one was removed.
    removed: Notify,
}

/// A new id that cannot be guessed.
pub(super) fn new_id() -> String {
    Uuid::new_v4().simple().to_string()
}

impl Connections {
    /// A new official connection.
    pub(super) fn open(&self, owner: &Arc<Principal>, limits: &Arc<Limits>) -> Arc<Connection> {
        let connection = Connection::new(new_id(), owner, StreamMode::Official, limits);
        let mut live = self.live.lock();
        live.insert(key(&connection), connection.clone());
        connection
    }

    /// The connection of an elephant.ai client, and whether it is new.
    pub(super) fn open_elephant(
        &self,
        id: &str,
        owner: &Arc<Principal>,
        limits: &Arc<Limits>,
    ) -> (Arc<Connection>, bool) {
        let mut live = self.live.lock();
        let key = elephant_key(owner, id);
        if let Some(connection) = live.get(&key)
            && !connection.state().is_gone
        {
            return (connection.clone(), false);
        }
        let connection = Connection::new(id.to_owned(), owner, StreamMode::Elephant, limits);
        live.insert(key, connection.clone());
        (connection, true)
    }

    /// The official connection with that id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Connection>> {
        let found = self.live.lock().get(id).cloned();
        found.filter(|one| one.mode == StreamMode::Official && !one.state().is_gone)
    }

    /// Removes a connection.
    pub(super) fn remove(&self, connection: &Arc<Connection>) {
        let is_other = |one: &Arc<Connection>| !Arc::ptr_eq(one, connection);
        let mut live = self.live.lock();
        let key = key(connection);
        if !live.get(&key).is_none_or(is_other) {
            live.remove(&key);
        }
        drop(live);
        self.removed.notify_waiters();
    }

    /// Waits until there are none.
    pub(super) async fn ended(&self) {
        loop {
            let removed = self.removed.notified();
            if self.live.lock().is_empty() {
                return;
            }
            removed.await;
        }
    }

    /// Applies the time limits.
    pub(super) fn expire(&self, now: Instant) {
        let live: Vec<_> = self.live.lock().values().cloned().collect();
        for connection in live.iter().filter(|connection| connection.expire(now)) {
            self.remove(connection);
        }
    }
}

fn key(connection: &Connection) -> String {
    match connection.mode {
        StreamMode::Official => connection.id.clone(),
        StreamMode::Elephant => elephant_key(&connection.owner, &connection.id),
    }
}

/// The key of a connection whose client chose its id; others may have chosen the same. The id of an
/// official connection has no space.
fn elephant_key(owner: &Principal, id: &str) -> String {
    format!("{:?} {} {id}", owner.auth_method, owner.name)
}
