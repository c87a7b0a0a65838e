//! A connection between a gateway and a host over two subjects, which carries a resumable link.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use async_nats::message::OutboundMessage;
use async_nats::{Client, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{Sink as _, StreamExt as _};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::nats::Nats;
use super::parts::{Joined, Joiner, Splitter};
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame, Limits};
use crate::link::MAX_HEADER;
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer};

/// What comes from the other end.
struct CarrierStream {
    parts: Subscriber,
    joiner: Joiner,
    /// The connection to NATS is lost, and with it what was on its way.
    lost: Pin<Box<WaitForCancellationFutureOwned>>,
    is_ended: bool,
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
    let stream = CarrierStream {
        parts,
        joiner: Joiner::new(limits.frame_from_network + MAX_HEADER),
        lost: Box::pin(nats.lost().cancelled_owned()),
        is_ended: false,
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

impl CarrierStream {
    fn lost(&mut self, why: String) -> LinkError {
        self.is_ended = true;
        let source = io::Error::new(io::ErrorKind::ConnectionReset, why);
        let context = "receiving over NATS";
        LinkError::Io { context, source }
    }
}

impl FrameStream for CarrierStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        while !self.is_ended {
            if self.lost.as_mut().poll(cx).is_ready() {
                let why = "the connection to the server is lost".to_owned();
                return Poll::Ready(Some(Err(self.lost(why))));
            }
            let Some(message) = ready!(self.parts.poll_next_unpin(cx)) else {
                break;
            };
            match self.joiner.join(&message.payload) {
                Ok(Joined::More) => {}
                Ok(Joined::Message(frame)) => {
                    return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
                }
                Ok(Joined::End) => break,
                Err(why) => return Poll::Ready(Some(Err(self.lost(why)))),
            }
        }
        self.is_ended = true;
        Poll::Ready(None)
    }
}

impl CarrierSink {
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        loop {
            let mut client = Pin::new(&mut self.client);
            let ready = ready!(client.as_mut().poll_ready(cx));
            ready.map_err(|_| LinkError::broken_pipe("sending over NATS"))?;
            let Some(payload) = self.waiting.pop_front() else {
                return Poll::Ready(Ok(()));
            };
            let message = OutboundMessage {
                subject: self.to.clone(),
                reply: None,
                payload,
                headers: None,
            };
            let sent = client.start_send(message);
            sent.map_err(|_| LinkError::broken_pipe("sending over NATS"))?;
        }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_ended, true) {
            self.waiting.push_back(self.splitter.end());
        }
    }
}

impl FrameSink for CarrierSink {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.poll_write(cx)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.waiting.extend(self.splitter.split(&frame));
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.poll_write(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _: CloseReason) -> Poll<Result<(), LinkError>> {
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
