//! The two halves of an agent connection's link.
//!
//! Frames given to the sink are handled at once; the stream yields the frames for the agent.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::agent_connection::{AgentConnection, LinkId};
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame};
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer, PeerKind};

/// Yields the frames for the agent.
struct Receiver {
    conn: Arc<AgentConnection>,
    id: LinkId,
}

/// Accepts the frames of the agent.
struct Sender {
    conn: Arc<AgentConnection>,
    id: LinkId,
}

/// A link on which this process is the client.
pub(super) fn open(conn: Arc<AgentConnection>, id: LinkId) -> Link {
    let wanted_agent = conn.config.name.as_deref().map(Arc::from);
    Link {
        peer: Peer {
            name: "agent-connect".to_owned(),
            half_close: true,
            kind: PeerKind::Internal,
            // It carries the threads of many clients; each request is authorised on its own.
            principal: None,
            wanted_agent,
        },
        rx: Box::new(Receiver {
            conn: conn.clone(),
            id,
        }),
        tx: Box::new(Sender { conn, id }),
        guard: Box::new(()),
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        let mut state = self.conn.state();
        if !state.is_current(self.id) || !state.open {
            return Poll::Ready(None);
        }
        if let Some(frame) = state.queue.pop_front() {
            return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.conn.receive(self.id, &frame);
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
        self.conn.close_link(self.id);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.conn.close_link(self.id);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.conn.close_link(self.id);
    }
}
