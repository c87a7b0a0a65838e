//! Rejects a client for which there is no agent.
//!
//! A client that has connected sends `initialize` at once; that request is answered with the reason
//! before its link is closed, so that the editor's user sees it.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{CloseReason, Frame, Kind, Limits, Scanned, scan};
use crate::transport::{FrameSink, Link, LinkError};

/// Time a client has to send its first request and to take the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Answers the client's first request with `reason` and closes the link.
///
/// # Errors
/// When the client could not be answered.
pub async fn reject(mut client: Link, reason: &Reason, limits: &Limits) -> Result<(), LinkError> {
    let request = tokio::time::timeout(
        TIMEOUT,
        poll_fn(|cx| first_request(&mut client, limits, cx)),
    )
    .await;
    let mut answer = match request {
        Ok(Some((frame, envelope))) => Some(reply::error(envelope.id(&frame), reason)),
        _ => None,
    };
    let sink = &mut *client.tx;
    let why = if reason.reason == reply::UNRECORDED {
        CloseReason::Unrecorded
    } else {
        CloseReason::PeerFailed
    };
    let sent = poll_fn(|cx| poll_send(sink, &mut answer, why, cx));
    let sent = tokio::time::timeout(TIMEOUT, sent).await.unwrap_or(Ok(()));
    // A socket that is closed with unread bytes is reset, and the answer could be lost.
    let rest = poll_fn(|cx| poll_rest(&mut client, cx));
    let _ = tokio::time::timeout(limits.close_grace, rest).await;
    sent
}

fn poll_rest(client: &mut Link, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        match client.rx.poll_next(cx) {
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(_) => return Poll::Ready(()),
            Poll::Pending => return Poll::Pending,
        }
    }
}

fn first_request(
    client: &mut Link,
    limits: &Limits,
    cx: &mut Context<'_>,
) -> Poll<Option<(Frame, crate::jsonrpc::Envelope)>> {
    loop {
        match client.rx.poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None | Some(Err(_))) => return Poll::Ready(None),
            Poll::Ready(Some(Ok(Decoded::Error(_)))) => {}
            Poll::Ready(Some(Ok(Decoded::Frame(frame)))) => {
                if let Scanned::Message(envelope) = scan(&frame, limits)
                    && envelope.kind == Kind::Request
                {
                    return Poll::Ready(Some((frame, envelope)));
                }
            }
        }
    }
}

fn poll_send(
    sink: &mut dyn FrameSink,
    answer: &mut Option<Frame>,
    why: CloseReason,
    cx: &mut Context<'_>,
) -> Poll<Result<(), LinkError>> {
    if answer.is_some() {
        match sink.poll_ready(cx) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        if let Some(frame) = answer.take() {
            sink.start_send(frame)?;
        }
    }
    sink.poll_close(cx, why)
}
