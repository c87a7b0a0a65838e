//! A link whose other end is in this process: messages given to its sink are handled at once, and its
//! stream yields the frames of the other end. The requests of the other end wait in [`OwnRequests`].

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::api::messages;
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Frame, Id, IdBuf, Kind, Limits, PendingRequests, Scanned, scan};
use transport::{FrameSink, FrameStream, Link, LinkError, Peer, SinkPoll, forward};

/// Requests of one end that may be open.
const MAX_REQUESTS: usize = 1 << 16;

/// The other end of a link. Dropped when no more frames will come.
pub(super) trait LocalPeer: Send + Sync + 'static {
    /// The current limits.
    fn limits(&self) -> Arc<Limits>;
    /// Handles a message. Never waits.
    fn receive(self: &Arc<Self>, message: Message);
    /// No more frames will come.
    fn close_input(&self);
    /// Nothing reads its frames any more.
    fn close_output(&self);
}

/// A message to the other end.
pub(super) enum Message {
    Request(IdBuf, String, Value),
    Notification(String, Value),
    Response(IdBuf, Response),
}

/// The result of a request, or its error.
pub(super) type Response = Result<Value, Value>;

/// The requests of the other end that wait for their responses.
#[derive(Debug)]
pub(super) struct OwnRequests {
    /// The first id is 1, as with most programs.
    last_id: u64,
    open: PendingRequests<oneshot::Sender<Response>>,
}

struct Receiver<P: LocalPeer> {
    frames: mpsc::Receiver<Frame>,
    other_end: Weak<P>,
}

struct Sender<P: LocalPeer>(Option<Arc<P>>);

/// Opens a link to `other_end`, whose frames come through `frames`.
pub(super) fn open(
    peer: Peer,
    other_end: Arc<impl LocalPeer>,
    frames: mpsc::Receiver<Frame>,
) -> Link {
    let receiver = Receiver {
        frames,
        other_end: Arc::downgrade(&other_end),
    };
    Link::new(peer, receiver, Sender(Some(other_end)), ())
}

impl Default for OwnRequests {
    fn default() -> Self {
        Self {
            last_id: 0,
            open: PendingRequests::new(MAX_REQUESTS),
        }
    }
}

impl OwnRequests {
    /// A request, and what receives its response; that is closed if there are too many requests.
    pub(super) fn begin(
        &mut self,
        method: &str,
        params: &Value,
    ) -> (Frame, oneshot::Receiver<Response>) {
        // Those whose caller has stopped waiting may never be answered.
        self.open.retain(|_, waiting| !waiting.is_closed());
        let (tx, response) = oneshot::channel();
        self.last_id += 1;
        let id = self.last_id.to_string();
        // One that cannot be stored is closed.
        let _ = self.open.insert(Id::of_json(id.as_bytes()), tx);
        (messages::request(self.last_id, method, params), response)
    }

    /// Passes on a response; one to no request is ignored.
    pub(super) fn end(&mut self, id: &IdBuf, response: Response) {
        if let Some((_, waiting)) = self.open.remove(id.as_id()) {
            // The caller may have stopped waiting.
            let _ = waiting.send(response);
        }
    }

    /// No more responses will come.
    pub(super) fn clear(&mut self) {
        self.open.drain().for_each(drop);
    }
}

impl Message {
    /// The message in a frame; `None` if it has none.
    fn of(frame: &Frame, limits: &Limits) -> Option<Self> {
        let Scanned::Message(at) = scan(frame, limits) else {
            return None;
        };
        let body = at.body(frame).map(serde_json::from_slice);
        let body = body.and_then(Result::ok).unwrap_or_default();
        let (id, method) = (at.id(frame).to_owned(), at.method(frame).into_owned());
        Some(match at.kind {
            Kind::Request => Self::Request(id, method, body),
            Kind::Notification => Self::Notification(method, body),
            Kind::Result => Self::Response(id, Ok(body)),
            Kind::Error => Self::Response(id, Err(body)),
        })
    }
}

impl<P: LocalPeer> Sender<P> {
    fn close(&mut self) {
        if let Some(other_end) = self.0.take() {
            other_end.close_input();
        }
    }
}

impl<P: LocalPeer> FrameStream for Receiver<P> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let next = self.frames.poll_recv(cx);
        next.map(|frame| frame.map(|frame| Ok(Decoded::Frame(frame))))
    }

    forward!(self => (); poll_lost, ended_cleanly, has_progressed, tells_loss);
}

impl<P: LocalPeer> FrameSink for Sender<P> {
    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if let Some(other_end) = &self.0
            && let Some(message) = Message::of(&frame, &other_end.limits())
        {
            other_end.receive(message);
        }
        Ok(())
    }

    forward!(self => (); poll_ready, poll_flush);

    fn poll_close(&mut self, _cx: &mut Context<'_>, _why: CloseReason) -> SinkPoll {
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl<P: LocalPeer> Drop for Receiver<P> {
    fn drop(&mut self) {
        if let Some(other_end) = self.other_end.upgrade() {
            other_end.close_output();
        }
    }
}

impl<P: LocalPeer> Drop for Sender<P> {
    fn drop(&mut self) {
        self.close();
    }
}
