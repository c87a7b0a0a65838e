//! The two halves of an agent connection's link.
//!
//! Frames given to the sink are handled at once; the stream yields the frames for the agent.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::line::{Dial, Line};
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Farewell, Frame};
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer, PeerKind};

/// Yields the frames for the agent.
struct Ear {
    line: Arc<Line>,
    dial: Dial,
}

/// Accepts the frames of the agent.
struct Mouth {
    line: Arc<Line>,
    dial: Dial,
}

/// A link on which this process is the client.
pub(super) fn open(line: Arc<Line>, dial: Dial) -> Link {
    let wanted_agent = line.offer.name.as_deref().map(Arc::from);
    Link {
        peer: Peer {
            name: "agent-connect".to_owned(),
            half_close: true,
            kind: PeerKind::Ours,
            // It carries the threads of many clients; each request is authorised on its own.
            principal: None,
            wanted_agent,
        },
        rx: Box::new(Ear {
            line: line.clone(),
            dial,
        }),
        tx: Box::new(Mouth { line, dial }),
        hold: Box::new(()),
    }
}

impl FrameStream for Ear {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        let mut state = self.line.state();
        if !state.is(self.dial) || !state.open {
            return Poll::Ready(None);
        }
        if let Some(frame) = state.out.pop_front() {
            return Poll::Ready(Some(Ok(Cut::Frame(frame))));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.ear = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl FrameSink for Mouth {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.line.hear(self.dial, &frame);
        Ok(())
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>, _why: Farewell) -> Poll<Result<(), LinkError>> {
        self.line.hang_up(self.dial);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Mouth {
    fn drop(&mut self) {
        self.line.hang_up(self.dial);
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.line.hang_up(self.dial);
    }
}
