//! Wrappers of a client's link whose first messages were read already.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame, IdBuf, Limits, Scanned, scan};
use crate::transport::{FrameSink, FrameStream, Link, LinkError};

struct Buffered {
    first: VecDeque<Decoded>,
    rest: Box<dyn FrameStream>,
}

/// Drops the answer to a request that the client was already answered.
struct AnswerFilter {
    id: Option<IdBuf>,
    limits: Arc<Limits>,
    rest: Box<dyn FrameSink>,
}

/// `link` with `first` put back in front of what it receives.
pub(super) fn with_buffered(link: Link, first: VecDeque<Decoded>) -> Link {
    Link {
        rx: Box::new(Buffered {
            first,
            rest: link.rx,
        }),
        ..link
    }
}

/// `link`, on which the answer to the request `id` is not sent a second time.
pub(super) fn without_answer(link: Link, id: IdBuf, limits: &Arc<Limits>) -> Link {
    Link {
        tx: Box::new(AnswerFilter {
            id: Some(id),
            limits: Arc::clone(limits),
            rest: link.tx,
        }),
        ..link
    }
}

impl FrameStream for Buffered {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        match self.first.pop_front() {
            Some(cut) => Poll::Ready(Some(Ok(cut))),
            None => self.rest.poll_next(cx),
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.rest.poll_lost(cx)
    }

    fn ended_cleanly(&self) -> bool {
        self.rest.ended_cleanly()
    }
}

impl FrameSink for AnswerFilter {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.rest.poll_ready(cx)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if let Some(id) = &self.id
            && let Scanned::Message(at) = scan(&frame, &self.limits)
            && at.kind.is_answer()
            && at.id(&frame) == id.as_id()
        {
            self.id = None;
            return Ok(());
        }
        self.rest.start_send(frame)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.rest.poll_flush(cx)
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        self.rest.poll_close(cx, why)
    }
}
