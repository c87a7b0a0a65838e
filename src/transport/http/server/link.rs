//! The two halves of a connection's link.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::connection::{Connection, Departure, StreamMode};
use super::connections::Connections;
use super::streams::CONNECTION;
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame, Scanned, scan};
use crate::transport::http::port::caller::AuthenticatedClient;
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer};

/// Receives the client's messages.
struct Receiver {
    connection: Arc<Connection>,
    /// The end or the error was reported.
    ended: bool,
}

/// Sends messages to the client.
struct Sender {
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// The link of a connection, which is removed from `connections` when the link is dropped.
pub(super) fn link(
    connection: &Arc<Connection>,
    connections: &Arc<Connections>,
    client: &AuthenticatedClient,
) -> Link {
    let connection = connection.clone();
    Link {
        peer: Peer {
            principal: Some(client.principal.clone()),
            wanted_agent: client.wanted_agent.clone(),
            ..Peer::remote(client.from.to_string(), false)
        },
        rx: Box::new(Receiver {
            connection: connection.clone(),
            ended: false,
        }),
        tx: Box::new(Sender {
            connection,
            connections: connections.clone(),
        }),
        guard: Box::new(()),
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut state = self.connection.state();
        let inbound = &mut state.inbound;
        if let Some(frame) = inbound.queue.pop_front() {
            inbound.frames -= 1;
            inbound.bytes -= frame.len();
            drop(state);
            self.connection.has_room.notify_waiters();
            return Poll::Ready(Some(Ok(Decoded::Frame(frame))));
        }
        match inbound.departure {
            None => {
                inbound.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(Departure::Closed) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Some(Departure::Lost(why)) => {
                self.ended = true;
                Poll::Ready(Some(Err(LinkError::Io {
                    context: "waiting for the client",
                    source: io::Error::new(io::ErrorKind::TimedOut, why),
                })))
            }
        }
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut state = self.connection.state();
        if state.is_gone() {
            return Poll::Ready(Err(LinkError::broken_pipe("writing to the client")));
        }
        if state.streams.waiting() >= self.connection.limits.http_waiting {
            state.blocked_since.get_or_insert_with(Instant::now);
            state.sender = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.blocked_since = None;
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, mut frame: Frame) -> Result<(), LinkError> {
        let connection = &self.connection;
        let mut state = connection.state();
        let state = &mut *state;
        if state.is_gone() {
            return Err(LinkError::broken_pipe("writing to the client"));
        }
        if let Some((id, _)) = &state.initial
            && let Scanned::Message(envelope) = scan(&frame, &connection.limits)
            && envelope.method.is_none()
            && envelope.id(&frame) == id.as_id()
        {
            if let Some((_, waiting)) = state.initial.take() {
                // If the client has gone meanwhile, its request detects it.
                let _ = waiting.send(frame);
            }
            return Ok(());
        }
        let stream = match connection.mode {
            StreamMode::Elephant => CONNECTION,
            StreamMode::Official => {
                let known = |session: &str| state.streams.is_known(session);
                let target = state.routing.outgoing(&mut frame, known);
                if let Some(opened) = target.opened {
                    state.streams.mark_known(&opened);
                }
                match (target.session.as_deref(), target.entered) {
                    (Some(session), Some(since)) => state.streams.entered(session, since),
                    (session, _) => state.streams.of(session),
                }
            }
        };
        state.streams.push(stream, frame);
        Ok(())
    }

    /// Does nothing: messages are where the client can read them, and what waits there is bounded.
    /// Waits until the client has read all queued messages and the streams have ended.
    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        let mut state = self.connection.state();
        if state.is_gone() {
            return Poll::Ready(Ok(()));
        }
        state.initial = None;
        state.closing = Some(why);
        state.streams.end();
        if state.streams.waiting() == 0 && state.streams.open_count() == 0 {
            return Poll::Ready(Ok(()));
        }
        state.sender = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.connection.end();
        self.connections.remove(&self.connection);
    }
}
