//! Writes the queued frames of one side, and closes it.

use std::task::{Context, Poll};

use conversation::Outbox;
use jsonrpc::Side;
use observe::{Event, Observers};
use transport::{FrameSink, LinkError};

/// One side's sink and its state.
pub(super) struct Writer {
    side: Side,
    sink: Box<dyn FrameSink>,
    /// A frame was given to the sink since it was last flushed.
    unflushed: bool,
    closed: bool,
}

/// The result of one poll.
pub(super) enum Written {
    /// Nothing could be done.
    Nothing,
    /// Something was done.
    Some,
    /// The peer can be sent nothing any more.
    Failed(LinkError),
}

impl Writer {
    pub(super) fn new(side: Side, sink: Box<dyn FrameSink>) -> Self {
        Self {
            side,
            sink,
            unflushed: false,
            closed: false,
        }
    }

    /// Whether the link was closed or has failed.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether frames or a close still wait for the peer.
    pub(super) fn waits(&self, outbox: &Outbox) -> bool {
        !self.closed
            && (self.unflushed
                || outbox.has_frames(self.side)
                || outbox.close_reason(self.side).is_some())
    }

    /// Writes nothing more.
    pub(super) const fn abandon(&mut self) {
        self.closed = true;
    }

    /// Gives all queued frames to the sink and flushes once; closes it when that is due.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        outbox: &mut Outbox,
        observers: &mut Observers,
    ) -> Written {
        if self.closed {
            return Written::Nothing;
        }
        let mut moved = false;
        let result = self.drain(cx, outbox, observers, &mut moved);
        match result {
            Err(error) => {
                self.closed = true;
                Written::Failed(error)
            }
            Ok(()) if moved => Written::Some,
            Ok(()) => Written::Nothing,
        }
    }

    fn drain(
        &mut self,
        cx: &mut Context<'_>,
        outbox: &mut Outbox,
        observers: &mut Observers,
        moved: &mut bool,
    ) -> Result<(), LinkError> {
        while outbox.has_frames(self.side) {
            let Poll::Ready(ready) = self.sink.poll_ready(cx) else {
                return Ok(());
            };
            ready?;
            let Some(frame) = outbox.pop(self.side) else {
                break;
            };
            observers.on_event(&Event::Sent(self.side, &frame));
            self.sink.start_send(frame)?;
            self.unflushed = true;
            *moved = true;
        }
        if self.unflushed {
            let Poll::Ready(flushed) = self.sink.poll_flush(cx) else {
                return Ok(());
            };
            flushed?;
            self.unflushed = false;
            *moved = true;
        }
        if let Some(why) = outbox.close_reason(self.side)
            && let Poll::Ready(closed) = self.sink.poll_close(cx, why)
        {
            closed?;
            self.closed = true;
            *moved = true;
        }
        Ok(())
    }
}
