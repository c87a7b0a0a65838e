//! A pair of links in this process: `memory:NAME`, for tests.
//!
//! It behaves as the other transports: bounded, ordered, half-closable, and with a limit on the
//! length of a message. Frames are passed without a byte stream.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{
    Accepting, Arrival, Binding, Connecting, Endpoint, Farewell, FrameSink, FrameStream, Link,
    LinkError, Worker,
};
use super::{Listener, OpenError, OpenErrorKind, Peer, Setup, Transport};
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Fault, Flaw, Frame, IdBuf, Limits};

/// Bytes that may be queued, beyond one frame.
const BYTES: usize = 64 << 10;
/// Frames that may be queued.
const FRAMES: usize = 256;
/// Links that may wait to be accepted.
const BACKLOG: usize = 16;

/// The transport for `memory:`.
#[derive(Debug)]
pub(super) struct Memory {
    rooms: Mutex<BTreeMap<String, mpsc::Sender<Link>>>,
}

/// A bound `memory:` endpoint.
struct Bound {
    name: String,
    rx: mpsc::Receiver<Link>,
}

/// One direction.
#[derive(Debug, Default)]
struct Lane {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The sender has closed the stream or was dropped.
    ended: bool,
    /// The receiver was dropped.
    deaf: bool,
    receiver: Option<Waker>,
    sender: Option<Waker>,
}

type Shared = Arc<Mutex<Lane>>;

struct Ear {
    lane: Shared,
    max: usize,
}

struct Mouth {
    lane: Shared,
}

/// Two connected links.
#[must_use]
pub fn pair(limits: &Limits) -> (Link, Link) {
    let (there, back) = (Shared::default(), Shared::default());
    let end = |rx: &Shared, tx: &Shared, name: &str| Link {
        peer: Peer::remote(format!("memory:{name}"), true),
        rx: Box::new(Ear {
            lane: rx.clone(),
            max: limits.frame_from_network,
        }),
        tx: Box::new(Mouth { lane: tx.clone() }),
        hold: Box::new(()),
    };
    (end(&back, &there, "left"), end(&there, &back, "right"))
}

impl Memory {
    pub(super) const fn new() -> Self {
        Self {
            rooms: Mutex::new(BTreeMap::new()),
        }
    }
}

impl Transport for Memory {
    fn schemes(&self) -> &'static [&'static str] {
        &["memory"]
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> Connecting<'a> {
        Box::pin(async move {
            let Endpoint::Memory(name) = to else {
                return Err(OpenError::misplaced(to));
            };
            let room = self.rooms.lock().get(name).cloned();
            let nobody = || OpenError::new(OpenErrorKind::Unavailable, to, "nothing listens there");
            let (near, far) = pair(&setup.limits);
            let room = room.ok_or_else(nobody)?;
            room.send(far).await.map_err(|_| nobody())?;
            Ok(near)
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, _setup: &'a Setup) -> Binding<'a> {
        Box::pin(async move {
            let Endpoint::Memory(name) = at else {
                return Err(OpenError::misplaced(at));
            };
            let name = name.clone();
            let mut rooms = self.rooms.lock();
            rooms.retain(|_, room| !room.is_closed());
            if rooms.contains_key(&name) {
                let what = "the name is in use";
                return Err(OpenError::new(OpenErrorKind::Unavailable, at, what));
            }
            let (tx, rx) = mpsc::channel(BACKLOG);
            rooms.insert(name.clone(), tx);
            Ok(Box::new(Bound { name, rx }) as Box<dyn Listener>)
        })
    }
}

impl Listener for Bound {
    fn accept(&mut self) -> Accepting<'_> {
        Box::pin(async move {
            let link = self.rx.recv().await?;
            let from = link.peer.name.clone();
            let finish = Box::pin(async move { Ok(link) });
            let worker = Worker::here();
            let arrival = Arrival {
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

impl Lane {
    fn wake_receiver(&mut self) {
        if let Some(waker) = self.receiver.take() {
            waker.wake();
        }
    }

    fn wake_sender(&mut self) {
        if let Some(waker) = self.sender.take() {
            waker.wake();
        }
    }
}

impl FrameStream for Ear {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        let mut lane = self.lane.lock();
        let Some(frame) = lane.frames.pop_front() else {
            if lane.ended {
                return Poll::Ready(None);
            }
            lane.receiver = Some(cx.waker().clone());
            return Poll::Pending;
        };
        lane.bytes -= frame.len();
        lane.wake_sender();
        let cut = if frame.len() > self.max {
            Cut::Flaw(Box::new(Flaw {
                fault: Fault::TooLong { limit: self.max },
                at: self.max,
                id: IdBuf::Absent,
                role: None,
                json_like: frame.as_bytes().first().is_some_and(|b| b"{[".contains(b)),
            }))
        } else {
            Cut::Frame(frame)
        };
        Poll::Ready(Some(Ok(cut)))
    }
}

impl FrameSink for Mouth {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut lane = self.lane.lock();
        if lane.deaf {
            return Poll::Ready(Err(gone()));
        }
        if lane.frames.len() >= FRAMES || lane.bytes >= BYTES {
            lane.sender = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        let mut lane = self.lane.lock();
        if lane.deaf || lane.ended {
            return Err(gone());
        }
        lane.bytes += frame.len();
        lane.frames.push_back(frame);
        lane.wake_receiver();
        Ok(())
    }

    // Queued frames can be read by the peer, so they count as flushed.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let lane = self.lane.lock();
        if lane.deaf && !lane.frames.is_empty() {
            return Poll::Ready(Err(gone()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _why: Farewell) -> Poll<Result<(), LinkError>> {
        {
            let mut lane = self.lane.lock();
            lane.ended = true;
            lane.wake_receiver();
        }
        self.poll_flush(cx)
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut lane = self.lane.lock();
        lane.deaf = true;
        lane.wake_sender();
    }
}

impl Drop for Mouth {
    fn drop(&mut self) {
        let mut lane = self.lane.lock();
        lane.ended = true;
        lane.wake_receiver();
    }
}

fn gone() -> LinkError {
    LinkError::Io {
        context: "writing to the peer",
        source: io::ErrorKind::BrokenPipe.into(),
    }
}
