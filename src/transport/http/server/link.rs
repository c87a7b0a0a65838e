//! The two halves of a connection's link.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::connection::{Connection, Left, Manner};
use super::register::Register;
use super::streams::CONNECTION;
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Farewell, Frame, Shape, scan};
use crate::transport::http::port::caller::Guest;
use crate::transport::{FrameSink, FrameStream, Link, LinkError, Peer, PeerKind};

/// Receives the client's messages.
struct Ear {
    connection: Arc<Connection>,
    /// The end or the error was reported.
    ended: bool,
}

/// Sends messages to the client.
struct Mouth {
    connection: Arc<Connection>,
    register: Arc<Register>,
}

/// The link of a connection, which is removed from `connections` when the link is dropped.
pub(super) fn link(connection: &Arc<Connection>, register: &Arc<Register>, guest: &Guest) -> Link {
    let connection = connection.clone();
    Link {
        peer: Peer {
            name: guest.from.to_string(),
            half_close: false,
            kind: PeerKind::Remote,
            principal: Some(guest.principal.clone()),
            wanted_agent: guest.wanted_agent.clone(),
        },
        rx: Box::new(Ear {
            connection: connection.clone(),
            ended: false,
        }),
        tx: Box::new(Mouth {
            connection,
            register: register.clone(),
        }),
        hold: Box::new(()),
    }
}

impl FrameStream for Ear {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut state = self.connection.state();
        let inbound = &mut state.inbound;
        if let Some(frame) = inbound.queue.pop_front() {
            inbound.frames -= 1;
            inbound.bytes -= frame.len();
            drop(state);
            self.connection.room.notify_waiters();
            return Poll::Ready(Some(Ok(Cut::Frame(frame))));
        }
        match inbound.left {
            None => {
                inbound.ear = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(Left::Politely) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Some(Left::Lost(why)) => {
                self.ended = true;
                Poll::Ready(Some(Err(LinkError::Io {
                    context: "waiting for the client",
                    source: io::Error::new(io::ErrorKind::TimedOut, why),
                })))
            }
        }
    }
}

impl FrameSink for Mouth {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut state = self.connection.state();
        if state.is_gone() {
            return Poll::Ready(Err(gone()));
        }
        if state.streams.waiting() >= self.connection.limits.http_waiting {
            state.blocked.get_or_insert_with(Instant::now);
            state.mouth = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.blocked = None;
        Poll::Ready(Ok(()))
    }

    fn start_send(&mut self, mut frame: Frame) -> Result<(), LinkError> {
        let connection = &self.connection;
        let mut state = connection.state();
        let state = &mut *state;
        if state.is_gone() {
            return Err(gone());
        }
        if let Some((id, _)) = &state.initial
            && let Shape::One(envelope) = scan(&frame, &connection.limits)
            && envelope.method.is_none()
            && envelope.id(&frame) == id.as_id()
        {
            if let Some((_, waiting)) = state.initial.take() {
                // If the client has gone meanwhile, its request detects it.
                let _ = waiting.send(frame);
            }
            return Ok(());
        }
        let stream = match connection.manner {
            Manner::Elephant => CONNECTION,
            Manner::Official => {
                let known = |session: &str| state.streams.knows(session);
                let way = state.routing.outgoing(&mut frame, known);
                if let Some(opened) = way.opened {
                    state.streams.know(&opened);
                }
                match (way.session.as_deref(), way.entered) {
                    (Some(session), Some(since)) => state.streams.entered(session, since),
                    (session, _) => state.streams.of(session),
                }
            }
        };
        state.streams.push(stream, frame);
        Ok(())
    }

    /// Does nothing: messages are where the client can read them, and what waits there is bounded.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    /// Waits until the client has read all queued messages and the streams have ended.
    fn poll_close(&mut self, cx: &mut Context<'_>, why: Farewell) -> Poll<Result<(), LinkError>> {
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
        state.mouth = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Mouth {
    fn drop(&mut self) {
        self.connection.end();
        self.register.remove(&self.connection);
    }
}

fn gone() -> LinkError {
    LinkError::Io {
        context: "writing to the client",
        source: io::ErrorKind::BrokenPipe.into(),
    }
}
