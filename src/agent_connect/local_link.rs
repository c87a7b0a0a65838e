//! A link whose other end is in this process: frames given to its sink are handled at once, and its
//! stream yields the frames of the other end.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame};
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer};

/// The other end of a link. Dropped when no more frames will come.
pub(super) trait LocalPeer: Send + Sync + 'static {
    /// Handles a frame. Never waits.
    fn receive(self: &Arc<Self>, frame: &Frame);
    /// No more frames will come.
    fn close_input(&self);
    /// Nothing reads its frames any more.
    fn close_output(&self);
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
    Link {
        peer,
        rx: Box::new(Receiver {
            frames,
            other_end: Arc::downgrade(&other_end),
        }),
        tx: Box::new(Sender(Some(other_end))),
        guard: Box::new(()),
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
}

impl<P: LocalPeer> FrameSink for Sender<P> {
    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if let Some(other_end) = &self.0 {
            other_end.receive(&frame);
        }
        Ok(())
    }

    fn poll_close(
        &mut self,
        _cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
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
