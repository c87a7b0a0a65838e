//! The two halves of a link to an agent in this process.
//!
//! Frames given to the sink are handled at once; the stream yields the agent's frames.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Farewell, Frame};
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer};

/// Messages to the client that may be queued before the agent's tasks wait.
const WAITING: usize = 256;

struct Ear {
    said: mpsc::Receiver<Frame>,
    over: CancellationToken,
}

/// Keeps the agent alive, together with its tasks: when all of them are dropped, the stream ends.
struct Mouth(Option<Arc<Agent>>);

/// Opens a link to the agent that is made with the sender of its frames.
pub(super) fn open(name: String, agent: impl FnOnce(mpsc::Sender<Frame>) -> Arc<Agent>) -> Link {
    let (tx, said) = mpsc::channel(WAITING);
    let agent = agent(tx);
    let over = agent.over.clone();
    Link {
        peer: Peer::remote(name, true),
        rx: Box::new(Ear { said, over }),
        tx: Box::new(Mouth(Some(agent))),
        hold: Box::new(()),
    }
}

impl FrameStream for Ear {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        let said = self.said.poll_recv(cx);
        said.map(|frame| frame.map(|frame| Ok(Cut::Frame(frame))))
    }
}

impl FrameSink for Mouth {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if let Some(agent) = &self.0 {
            agent.hear(&frame);
        }
        Ok(())
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>, _why: Farewell) -> Poll<Result<(), LinkError>> {
        if let Some(agent) = self.0.take() {
            agent.deafen();
        }
        Poll::Ready(Ok(()))
    }
}

/// The client no longer reads.
impl Drop for Ear {
    fn drop(&mut self) {
        self.over.cancel();
    }
}
