//! The halves of a resumable link, which share its end.

use std::sync::Arc;
use std::task::Context;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::end::LinkEnd;
use crate::{
    FrameSink, FrameStream, Link, LinkGuard, Peer, PresenceCallback, SinkPoll, StderrCallback,
    forward,
};
use jsonrpc::CloseReason;

/// An end, shared by the halves of a link and the table of links. No lock is held over an await.
pub(super) type Shared = Arc<Mutex<LinkEnd>>;

/// A half of a link.
struct Half(Shared);

/// The guard of a link. When it is dropped, the conversation has ended.
struct Guard {
    end: Shared,
    ended: Box<dyn Fn() + Send>,
}

/// A link whose end is shared; `ended` is called when the conversation has ended.
pub(super) fn link(end: &Shared, peer: Peer, ended: impl Fn() + Send + 'static) -> Link {
    let half = || Half(Arc::clone(end));
    let peer = Peer {
        half_close: false,
        ..peer
    };
    let guard = Guard {
        end: Arc::clone(end),
        ended: Box::new(ended),
    };
    Link::new(peer, half(), half(), guard)
}

impl FrameStream for Half {
    forward!(self => self.0.lock(); poll_next, poll_lost, ended_cleanly);
    // It has signs of life of its own.
    forward!(self => (); has_progressed, tells_loss);
}

impl FrameSink for Half {
    forward!(self => self.0.lock(); poll_ready, start_send);

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        self.0.lock().poll_flush(cx).map(Ok)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> SinkPoll {
        self.0.lock().poll_close(cx, why).map(Ok)
    }
}

impl LinkGuard for Guard {
    fn capture_stderr(&mut self, callback: StderrCallback) {
        // It is called by one process at a time, but shared with those of later attachments.
        let callback = Mutex::new(callback);
        let shared = Arc::new(move |bytes: &[u8]| callback.lock()(bytes));
        self.end.lock().capture_stderr(shared);
    }

    fn watch_presence(&mut self, watch: PresenceCallback) {
        self.end.lock().watch = Some(watch);
    }

    fn away(&self) -> Option<(Instant, usize)> {
        let end = self.end.lock();
        Some((end.away_since?, end.state.sent().bytes()))
    }

    fn unacknowledged(&self) -> usize {
        self.end.lock().state.sent().len()
    }

    fn is_relay(&self) -> bool {
        true
    }

    forward!(self => self.end.lock(); signal);
    forward!(self => (); poll_exit, longest, log_redaction, restart, restarts, stderr_tail);
}

impl Drop for Guard {
    fn drop(&mut self) {
        (self.ended)();
        self.end.lock().drop_conversation();
    }
}
