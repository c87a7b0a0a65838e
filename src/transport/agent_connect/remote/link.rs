//! The two halves of a link to an agent in this process.
//!
//! Frames given to the sink are handled at once; the stream yields the agent's frames.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::agent::RemoteAgent;
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame};
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer};

/// Messages to the client that may be queued before the agent's tasks wait.
const QUEUE_LEN: usize = 256;

struct Receiver {
    frames: mpsc::Receiver<Frame>,
    closed: CancellationToken,
}

/// Keeps the agent alive, together with its tasks: when all of them are dropped, the stream ends.
struct Sender(Option<Arc<RemoteAgent>>);

/// Opens a link to the agent that is made with the sender of its frames.
pub(super) fn open(
    name: String,
    agent: impl FnOnce(mpsc::Sender<Frame>) -> Arc<RemoteAgent>,
) -> Link {
    let (tx, frames) = mpsc::channel(QUEUE_LEN);
    let agent = agent(tx);
    let closed = agent.closed.clone();
    Link {
        peer: Peer::remote(name, true),
        rx: Box::new(Receiver { frames, closed }),
        tx: Box::new(Sender(Some(agent))),
        guard: Box::new(()),
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let next = self.frames.poll_recv(cx);
        next.map(|frame| frame.map(|frame| Ok(Decoded::Frame(frame))))
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if let Some(agent) = &self.0 {
            agent.receive(&frame);
        }
        Ok(())
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(
        &mut self,
        _cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        if let Some(agent) = self.0.take() {
            agent.close_input();
        }
        Poll::Ready(Ok(()))
    }
}

/// The client no longer reads.
impl Drop for Receiver {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
