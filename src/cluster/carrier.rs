//! A connection between a gateway and a host over two subjects, which carries a resumable link.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker, ready};

use async_nats::message::OutboundMessage;
use async_nats::{Client, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{Sink as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::counts;
use super::nats::{Nats, WAITING};
use super::parts::{Joined, Joiner, Splitter};
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Frame, Limits};
use link::{MAX_HEADER, WINDOW};
use transport::{FrameSink, FrameStream, Link, LinkError, Peer, SinkPoll, forward};

/// Most bytes of parts that wait, besides those of one message: a window, and the acknowledgements.
const MOST: usize = 2 * WINDOW as usize;

/// What comes from the other end.
struct CarrierStream {
    parts: mpsc::Receiver<Bytes>,
    /// The bytes of the parts that wait.
    waiting: Arc<AtomicUsize>,
    joiner: Joiner,
}

/// What goes to the other end.
struct CarrierSink {
    client: Client,
    to: Subject,
    splitter: Splitter,
    /// The parts of one message.
    waiting: VecDeque<Bytes>,
    is_ended: bool,
}

/// The carrier that receives on a subscription, and sends to the subject `to`.
pub(super) fn carrier(
    nats: &Nats,
    parts: Subscriber,
    to: String,
    peer: Peer,
    limits: &Limits,
) -> Link {
    let longest = limits.frame_from_network + MAX_HEADER;
    let waiting = Arc::<AtomicUsize>::default();
    let (taken, taken_parts) = mpsc::channel(WAITING);
    let bound = (Arc::clone(&waiting), MOST.saturating_add(longest));
    tokio::spawn(take(parts, taken, bound, nats.lost()));
    let stream = CarrierStream {
        parts: taken_parts,
        waiting,
        joiner: Joiner::new(longest),
    };
    let sink = CarrierSink {
        splitter: Splitter::new(nats.client.max_payload()),
        client: nats.client.clone(),
        to: to.into(),
        waiting: VecDeque::new(),
        is_ended: false,
    };
    Link::new(peer, stream, sink, ())
}

/// Takes parts as they come, until the connection to NATS is lost: a subscription bounds only their
/// number. More bytes than a window has room for are no link's, and end the carrier.
async fn take(
    mut parts: Subscriber,
    taken: mpsc::Sender<Bytes>,
    (waiting, most): (Arc<AtomicUsize>, usize),
    lost: CancellationToken,
) {
    counts::CARRIERS.fetch_add(1, Relaxed);
    let all = async {
        while let Some(message) = parts.next().await {
            let part = message.payload;
            let bytes = waiting.fetch_add(part.len(), Relaxed) + part.len();
            if bytes > most || taken.try_send(part).is_err() {
                tracing::warn!("a carrier ends: {bytes} bytes wait, more than its link may send");
                return;
            }
        }
    };
    tokio::select! {
        () = all => {}
        () = taken.closed() => {}
        () = lost.cancelled() => {}
    }
    counts::CARRIERS.fetch_sub(1, Relaxed);
}

impl FrameStream for CarrierStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        loop {
            let Some(part) = ready!(self.parts.poll_recv(cx)) else {
                let why = "the connection to the server is lost".to_owned();
                return Poll::Ready(Some(Err(lost(why))));
            };
            self.waiting.fetch_sub(part.len(), Relaxed);
            match self.joiner.join(&part) {
                Ok(Joined::More) => {}
                Ok(Joined::Message(frame)) => {
                    return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
                }
                Ok(Joined::End) => return Poll::Ready(None),
                Err(why) => return Poll::Ready(Some(Err(lost(why)))),
            }
        }
    }

    forward!(self => (); poll_lost, ended_cleanly, has_progressed, tells_loss);
}

fn lost(why: String) -> LinkError {
    let source = io::Error::new(io::ErrorKind::ConnectionReset, why);
    let context = "receiving over NATS";
    LinkError::Io { context, source }
}

impl CarrierSink {
    fn poll_write(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        // A client that is ready keeps one of the places of all carriers until it has sent.
        while !self.waiting.is_empty() {
            let mut client = Pin::new(&mut self.client);
            let ready = ready!(client.as_mut().poll_ready(cx));
            ready.map_err(|_| LinkError::broken_pipe("sending over NATS"))?;
            let payload = self.waiting.pop_front().unwrap_or_default();
            let message = OutboundMessage {
                subject: self.to.clone(),
                reply: None,
                payload,
                headers: None,
            };
            let sent = client.start_send(message);
            sent.map_err(|_| LinkError::broken_pipe("sending over NATS"))?;
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_ended, true) {
            self.waiting.push_back(self.splitter.end());
        }
    }
}

impl FrameSink for CarrierSink {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        self.poll_write(cx)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.waiting.extend(self.splitter.split(&frame));
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        self.poll_write(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _: CloseReason) -> SinkPoll {
        self.end();
        self.poll_write(cx)
    }
}

/// The other end learns at once that the carrier is over, if NATS takes the message.
impl Drop for CarrierSink {
    fn drop(&mut self) {
        self.waiting.clear();
        self.end();
        let _ = self.poll_write(&mut Context::from_waker(Waker::noop()));
    }
}
