//! Wrappers of a client's link whose first messages were read already.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Farewell, Frame, IdBuf, Limits, Shape, scan};
use crate::transport::{FrameSink, FrameStream, Link, LinkError};

struct Reread {
    first: VecDeque<Cut>,
    rest: Box<dyn FrameStream>,
}

/// Drops the answer to a request that the client was already answered.
struct Answered {
    id: Option<IdBuf>,
    limits: Arc<Limits>,
    rest: Box<dyn FrameSink>,
}

/// `link` with `first` put back in front of what it receives.
pub(super) fn unread(link: Link, first: VecDeque<Cut>) -> Link {
    Link {
        rx: Box::new(Reread {
            first,
            rest: link.rx,
        }),
        ..link
    }
}

/// `link`, on which the answer to the request `id` is not sent a second time.
pub(super) fn answered(link: Link, id: IdBuf, limits: &Arc<Limits>) -> Link {
    Link {
        tx: Box::new(Answered {
            id: Some(id),
            limits: Arc::clone(limits),
            rest: link.tx,
        }),
        ..link
    }
}

impl FrameStream for Reread {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        match self.first.pop_front() {
            Some(cut) => Poll::Ready(Some(Ok(cut))),
            None => self.rest.poll_next(cx),
        }
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        self.rest.poll_over(cx)
    }

    fn ended_on_purpose(&self) -> bool {
        self.rest.ended_on_purpose()
    }
}

impl FrameSink for Answered {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.rest.poll_ready(cx)
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if let Some(id) = &self.id
            && let Shape::One(at) = scan(&frame, &self.limits)
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

    fn poll_close(&mut self, cx: &mut Context<'_>, why: Farewell) -> Poll<Result<(), LinkError>> {
        self.rest.poll_close(cx, why)
    }
}
