//! A pair of links in this process: `memory:NAME`, for tests.
//!
//! It behaves as the other transports: bounded, ordered, half-closable, and with a limit on the
//! length of a message. Frames are passed without a byte stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::queue::Queue;
use super::{
    AcceptFuture, CloseReason, ConnectFuture, Endpoint, FrameSink, FrameStream, IncomingLink, Link,
    LinkError, ListenFuture, Worker,
};
use super::{Listener, OpenError, OpenErrorKind, Peer, Setup, Transport};
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{Frame, FrameError, FrameFault, IdBuf, Limits};

/// The context of errors.
const WRITING: &str = "writing to the peer";
/// Links that may wait to be accepted.
const BACKLOG: usize = 16;

/// The transport for `memory:`.
#[derive(Debug)]
pub(super) struct MemoryTransport {
    listeners: Mutex<BTreeMap<String, mpsc::Sender<Link>>>,
}

/// A bound `memory:` endpoint.
struct Bound {
    name: String,
    rx: mpsc::Receiver<Link>,
}

/// One direction. It ends when the sender closes it, or when either half is dropped.
type Direction = Arc<Queue<Frame>>;

struct Receiver {
    direction: Direction,
    max: usize,
}

struct Sender {
    direction: Direction,
    /// The stream was closed here.
    closed: bool,
}

/// Two connected links.
#[must_use]
pub fn pair(limits: &Limits) -> (Link, Link) {
    let (there, back) = (Direction::default(), Direction::default());
    let end = |rx: &Direction, tx: &Direction, name: &str| Link {
        peer: Peer::remote(format!("memory:{name}"), true),
        rx: Box::new(Receiver {
            direction: rx.clone(),
            max: limits.frame_from_network,
        }),
        tx: Box::new(Sender {
            direction: tx.clone(),
            closed: false,
        }),
        guard: Box::new(()),
    };
    (end(&back, &there, "left"), end(&there, &back, "right"))
}

impl MemoryTransport {
    pub(super) const fn new() -> Self {
        Self {
            listeners: Mutex::new(BTreeMap::new()),
        }
    }
}

impl Transport for MemoryTransport {
    fn schemes(&self) -> &'static [&'static str] {
        &["memory"]
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(async move {
            let Endpoint::Memory(name) = to else {
                return Err(OpenError::wrong_scheme(to));
            };
            let listener = self.listeners.lock().get(name).cloned();
            let refused =
                || OpenError::new(OpenErrorKind::Unavailable, to, "nothing listens there");
            let (near, far) = pair(&setup.limits);
            let listener = listener.ok_or_else(refused)?;
            listener.send(far).await.map_err(|_| refused())?;
            Ok(near)
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, _setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(async move {
            let Endpoint::Memory(name) = at else {
                return Err(OpenError::wrong_scheme(at));
            };
            let name = name.clone();
            let mut listeners = self.listeners.lock();
            listeners.retain(|_, listener| !listener.is_closed());
            if listeners.contains_key(&name) {
                let what = "the name is in use";
                return Err(OpenError::new(OpenErrorKind::Unavailable, at, what));
            }
            let (tx, rx) = mpsc::channel(BACKLOG);
            listeners.insert(name.clone(), tx);
            Ok(Box::new(Bound { name, rx }) as Box<dyn Listener>)
        })
    }
}

impl Listener for Bound {
    fn accept(&mut self) -> AcceptFuture<'_> {
        Box::pin(async move {
            let link = self.rx.recv().await?;
            let from = link.peer.name.clone();
            let finish = Box::pin(async move { Ok(link) });
            let worker = Worker::current();
            let arrival = IncomingLink {
                from,
                finish,
                worker,
            };
            Some(Ok(arrival))
        })
    }

    fn address(&self) -> Endpoint {
        Endpoint::Memory(self.name.clone())
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let Some(frame) = ready!(self.direction.poll_take(cx)) else {
            return Poll::Ready(None);
        };
        let cut = if frame.len() > self.max {
            Decoded::Error(Box::new(FrameError {
                fault: FrameFault::TooLong { limit: self.max },
                at: self.max,
                id: IdBuf::Absent,
                role: None,
                json_like: frame.as_bytes().first().is_some_and(|b| b"{[".contains(b)),
            }))
        } else {
            Decoded::Frame(frame)
        };
        Poll::Ready(Some(Ok(cut)))
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match ready!(self.direction.poll_room(cx)) {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(LinkError::broken_pipe(WRITING))),
        }
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if self.direction.has_ended() {
            return Err(LinkError::broken_pipe(WRITING));
        }
        let bytes = frame.len();
        self.direction.put(frame, bytes);
        Ok(())
    }

    // Queued frames can be read by the peer, so they count as flushed.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let is_lost = self.direction.has_ended() && !self.closed && !self.direction.is_empty();
        Poll::Ready(if is_lost {
            Err(LinkError::broken_pipe(WRITING))
        } else {
            Ok(())
        })
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        let flushed = self.poll_flush(cx);
        self.closed = true;
        self.direction.end();
        flushed
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.direction.end();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.direction.end();
    }
}
