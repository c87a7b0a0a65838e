//! The link between a conversation and its detachable client.

use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::detached::DetachedConversation;
use jsonrpc::framing::Decoded;
use jsonrpc::{CloseReason, Frame};
use transport::{
    FrameSink, FrameStream, Link, LinkError, LinkGuard, Peer, PresenceCallback, forward,
};

/// Shared by a conversation's two halves and the store. No lock is held over an await.
pub(super) type Shared = Arc<Mutex<DetachedConversation>>;

/// A part of the link. The conversation needs no client once it drops one.
struct Part(Shared);

/// The conversation's link to its client.
pub(super) fn link(client: &Shared, peer: Peer) -> Link {
    let peer = Peer {
        half_close: false,
        ..peer
    };
    let part = || Part(Arc::clone(client));
    Link::new(peer, part(), part(), part())
}

impl FrameStream for Part {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        self.0.lock().poll_received(cx)
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.0.lock().poll_over(cx)
    }

    // The client's own link is asked before one that breaks is awaited.
    forward!(self => (); ended_cleanly, has_progressed, tells_loss);
}

impl FrameSink for Part {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.0.lock().poll_ready(cx).map(Ok)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        self.0.lock().send(frame);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.0.lock().poll_flush(cx).map(Ok)
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        self.0.lock().poll_close(cx, why).map(Ok)
    }
}

impl LinkGuard for Part {
    fn watch_presence(&mut self, watch: PresenceCallback) {
        self.0.lock().set_watch(watch);
    }

    fn longest(&self) -> Option<usize> {
        Some(self.0.lock().longest())
    }

    forward!(self => self.0.lock(); away);
    forward!(self => ();
        poll_exit, signal, capture_stderr, unacknowledged, log_redaction, restart, restarts,
        is_relay, stderr_tail);
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}
