//! The link between a conversation and its detachable client.

use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::berth::Berth;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Farewell, Frame};
use crate::transport::{FrameSink, FrameStream, Hold, Link, LinkError, Peer, Watch};

/// Shared by a conversation's two halves and the store. No lock is held over an await.
pub(super) type Shared = Arc<Mutex<Berth>>;

struct Hears(Shared);

struct Says(Shared);

struct Keeps(Shared);

/// The conversation's link to its client.
pub(super) fn link(berth: &Shared, peer: Peer) -> Link {
    Link {
        peer: Peer {
            half_close: false,
            ..peer
        },
        rx: Box::new(Hears(Arc::clone(berth))),
        tx: Box::new(Says(Arc::clone(berth))),
        hold: Box::new(Keeps(Arc::clone(berth))),
    }
}

impl FrameStream for Hears {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        self.0.lock().poll_heard(cx)
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.0.lock().poll_over(cx)
    }
}

impl FrameSink for Says {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.0.lock().poll_ready(cx).map(Ok)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.0.lock().say(frame);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.0.lock().poll_flush(cx).map(Ok)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, why: Farewell) -> Poll<Result<(), LinkError>> {
        self.0.lock().poll_close(cx, why).map(Ok)
    }
}

impl Hold for Keeps {
    fn watch(&mut self, watch: Watch) {
        self.0.lock().watched(watch);
    }
}

impl Drop for Says {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}
