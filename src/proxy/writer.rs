//! Writes what waits for one side, and takes leave of it.
//!
//! Not here: what is written, and in which order the two sides get their turn.

use std::task::{Context, Poll};

use crate::conversation::Outbox;
use crate::jsonrpc::Side;
use crate::observe::{Sight, Taps};
use crate::transport::{FrameSink, LinkError};

/// One side's sink and how far it has got.
pub(super) struct Writer {
    side: Side,
    sink: Box<dyn FrameSink>,
    /// Something was given to the sink since it was last flushed.
    unflushed: bool,
    closed: bool,
}

/// What came of a turn at writing.
pub(super) enum Written {
    /// Nothing could be done.
    Nothing,
    /// Something was done.
    Some,
    /// The peer can be told nothing any more.
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

    /// Whether leave has been taken, or the link has failed.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether something waits for the peer to take it, or to be taken leave of.
    pub(super) fn waits(&self, outbox: &Outbox) -> bool {
        !self.closed
            && (self.unflushed
                || outbox.has_frames(self.side)
                || outbox.farewell(self.side).is_some())
    }

    /// Says nothing more.
    pub(super) const fn give_up(&mut self) {
        self.closed = true;
    }

    /// Gives the sink all that waits and flushes once; closes it when that is due.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        outbox: &mut Outbox,
        taps: &mut Taps,
    ) -> Written {
        if self.closed {
            return Written::Nothing;
        }
        let mut moved = false;
        let result = self.drain(cx, outbox, taps, &mut moved);
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
        taps: &mut Taps,
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
            taps.see(&Sight::Said(self.side, &frame));
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
        if let Some(why) = outbox.farewell(self.side)
            && let Poll::Ready(closed) = self.sink.poll_close(cx, why)
        {
            closed?;
            self.closed = true;
            *moved = true;
        }
        Ok(())
    }
}
